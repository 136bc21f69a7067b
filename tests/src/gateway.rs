//! A client of etcd that costs next to nothing: it speaks JSON to etcd's gateway, where `etcdctl` would be a new process
//! for each request. For tests that write and read all the time; they are judged with `etcdctl`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// A value, and the revision that it was written in.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyValue {
    pub value: String,
    pub revision: u64,
}

/// Writes a value. Anything but success means that it may have been written or not, or may be yet.
pub fn put(url: &str, key: &str, value: &str) -> Result<(), String> {
    call(url, "/v3/kv/put", &json!({"key": encode(key), "value": encode(value)})).map(drop)
}

/// Reads what a quorum has.
pub fn get(url: &str, key: &str) -> Result<Option<KeyValue>, String> {
    let answer = call(url, "/v3/kv/range", &json!({"key": encode(key)}))?;
    let found = &answer["kvs"][0];
    if found.is_null() {
        return Ok(None);
    }
    let value = decode(found["value"].as_str().unwrap_or_default());
    let revision = number(&found["mod_revision"]);
    match (value, revision) {
        (Some(value), Some(revision)) => Ok(Some(KeyValue { value, revision })),
        _ => Err(format!("not understood: {answer}")),
    }
}

/// Writes a value if the last one was written in this revision (0: if there is none), and tells the revision of the new one;
/// none if there is another value now.
pub fn put_after(url: &str, key: &str, revision: u64, value: &str) -> Result<Option<u64>, String> {
    let unchanged = json!({
        "key": encode(key),
        "target": "MOD",
        "result": "EQUAL",
        "mod_revision": revision.to_string(),
    });
    let put = json!({"request_put": {"key": encode(key), "value": encode(value)}});
    let answer = call(url, "/v3/kv/txn", &json!({"compare": [unchanged], "success": [put]}))?;
    if answer["succeeded"] != true {
        return Ok(None);
    }
    let revision = number(&answer["header"]["revision"]);
    revision.map(Some).ok_or_else(|| format!("no revision in {answer}"))
}

/// 64-bit numbers are strings in etcd's JSON.
fn number(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

/// One request on one connection. HTTP/1.0 spares us to understand answers that come in chunks.
fn call(url: &str, path: &str, body: &Value) -> Result<Value, String> {
    let address = url.strip_prefix("http://").and_then(|address| address.parse::<SocketAddr>().ok());
    let address = address.ok_or_else(|| format!("not an address: {url}"))?;
    let answer = exchange(address, path, &body.to_string()).map_err(|error| format!("{url}: {error}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("{url} answers {answer:?}"))?;
    if head.split(' ').nth(1) != Some("200") {
        return Err(format!("{url} answers {body}"));
    }
    // One that died while it answered has sent half of it.
    serde_json::from_str(body).map_err(|error| format!("{url} answers {body:?}: {error}"))
}

fn exchange(address: SocketAddr, path: &str, body: &str) -> std::io::Result<String> {
    let patience = Duration::from_secs(2);
    let mut connection = TcpStream::connect_timeout(&address, patience / 2)?;
    connection.set_read_timeout(Some(patience))?;
    connection.set_write_timeout(Some(patience))?;
    let head = format!("POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
    connection.write_all(format!("{head}\r\n\r\n{body}").as_bytes())?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64, which etcd's JSON has keys and values in.
fn encode(text: &str) -> String {
    let encode_three = |bytes: &[u8]| {
        let number = (0..3).fold(0, |number, place| number << 8 | usize::from(*bytes.get(place).unwrap_or(&0)));
        let digit = |place: usize| match place <= bytes.len() {
            true => char::from(DIGITS[number >> (18 - 6 * place) & 63]),
            false => '=',
        };
        [digit(0), digit(1), digit(2), digit(3)]
    };
    text.as_bytes().chunks(3).flat_map(encode_three).collect()
}

fn decode(encoded: &str) -> Option<String> {
    let mut bytes = Vec::new();
    for four in encoded.as_bytes().chunks(4) {
        let digits = four.iter().take_while(|digit| **digit != b'=');
        let digits: Option<Vec<usize>> = digits.map(|digit| DIGITS.iter().position(|it| it == digit)).collect();
        let digits = digits?;
        let number = (0..4).fold(0, |number, place| number << 6 | digits.get(place).unwrap_or(&0));
        let three = [number >> 16, number >> 8, number].map(|byte| byte as u8);
        bytes.extend_from_slice(&three[..digits.len().checked_sub(1)?]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_survives_a_round_trip() {
        for (text, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob/~?", "Zm9vYi9+Pw==")] {
            assert_eq!(encode(text), encoded);
            assert_eq!(decode(encoded).as_deref(), Some(text));
        }
        assert_eq!(decode("!!!!"), None);
    }
}
