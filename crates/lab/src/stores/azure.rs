//! What the Azure store holds, asked over its protocol: Azurite keeps blobs in files that only it can read.

use anyhow::{Context, Result, bail};
use http::{Method, StatusCode};
use kube::client::Body;

use super::{Credentials, Store};
use crate::api;

/// The account that every Azurite has, and its key: both are in Azure's documentation.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// Signed with that key: the bearer may do everything with blobs until 2099. Instead of signing each of our requests.
const SAS_TOKEN: &str = "sv=2021-12-02&ss=b&srt=sco&sp=rwdlac&se=2099-12-31T23%3A59%3A59Z\
                         &spr=https%2Chttp&sig=Bkcq9Xt9HsXDNLMdmyjn%2FgrKZJ4aZz242uvQlMiRXlE%3D";

pub fn credentials() -> Credentials {
    Credentials::Azure { account: ACCOUNT.to_owned(), key: KEY.to_owned(), sas_token: SAS_TOKEN.to_owned() }
}

pub fn url() -> String {
    format!("http://{}/{ACCOUNT}", Store::Azure.address())
}

pub async fn create_container(name: &str) -> Result<()> {
    match ask(Method::PUT, name, "restype=container", Vec::new()).await? {
        (StatusCode::CREATED | StatusCode::CONFLICT, _) => Ok(()),
        (status, text) => bail!("making the container {name}: {status}: {}", String::from_utf8_lossy(&text)),
    }
}

pub async fn objects(container: &str) -> Result<Vec<(String, u64)>> {
    list(container, "").await
}

/// A blob of which only blocks were uploaded is listed to those who ask for such ones.
pub async fn unfinished_uploads(container: &str) -> Result<Vec<String>> {
    let finished = objects(container).await?;
    let all = list(container, "&include=uncommittedblobs").await?;
    Ok(all.into_iter().filter(|blob| !finished.contains(blob)).map(|(name, _)| name).collect())
}

pub async fn read(container: &str, blob: &str) -> Result<Vec<u8>> {
    let path = format!("{container}/{blob}");
    expect(StatusCode::OK, ask(Method::GET, &path, "", Vec::new()).await?, || format!("reading {path}"))
}

/// Azurite finds its files' bytes only itself, so the blob is written anew with another byte.
pub async fn corrupt_byte(container: &str, blob: &str, offset: u64) -> Result<()> {
    let mut content = read(container, blob).await?;
    let length = content.len();
    let byte = usize::try_from(offset).ok().and_then(|offset| content.get_mut(offset));
    *byte.with_context(|| format!("{container}/{blob} has {length} bytes, and none at {offset}"))? ^= 1;
    let path = format!("{container}/{blob}");
    let answer = ask(Method::PUT, &path, "", content).await?;
    expect(StatusCode::CREATED, answer, || format!("writing {path}")).map(drop)
}

async fn list(container: &str, more: &str) -> Result<Vec<(String, u64)>> {
    let answer = ask(Method::GET, container, &format!("restype=container&comp=list{more}"), Vec::new()).await?;
    let text = expect(StatusCode::OK, answer, || format!("listing the container {container}"))?;
    let text = String::from_utf8(text).context("reading a list of blobs")?;
    blobs_in(&text).with_context(|| format!("a list of blobs that can't be read: {text}"))
}

/// The names and sizes in a list of blobs. The lab's own names need no escaping in XML.
fn blobs_in(xml: &str) -> Option<Vec<(String, u64)>> {
    let between = |text: &'_ str, tag: &str| -> Option<String> {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once(&format!("</{tag}>"))?.0.to_owned())
    };
    let blobs = xml.split("<Blob>").skip(1);
    blobs.map(|blob| Some((between(blob, "Name")?, between(blob, "Content-Length")?.parse().ok()?))).collect()
}

fn expect(expected: StatusCode, answer: (StatusCode, Vec<u8>), doing: impl Fn() -> String) -> Result<Vec<u8>> {
    match answer {
        (status, content) if status == expected => Ok(content),
        (status, content) => bail!("{}: {status}: {}", doing(), String::from_utf8_lossy(&content)),
    }
}

/// One request, and the whole answer. kube's client is the one HTTP client that the lab has.
async fn ask(method: Method, path: &str, query: &str, body: Vec<u8>) -> Result<(StatusCode, Vec<u8>)> {
    let client = api::client_of(&format!("http://{}", Store::Azure.address()))?;
    let request = http::Request::builder()
        .method(method)
        .uri(format!("/{ACCOUNT}/{path}?{query}&{SAS_TOKEN}"))
        .header("x-ms-version", "2021-12-02")
        .header("x-ms-blob-type", "BlockBlob")
        .header("content-length", body.len())
        .body(Body::from(body))
        .with_context(|| format!("asking the Azure store for {path}"))?;
    let answer = client.send(request).await.with_context(|| format!("asking the Azure store for {path}"))?;
    let (head, body) = answer.into_parts();
    let content = body.collect_bytes().await.with_context(|| format!("reading {path} from the Azure store"))?;
    Ok((head.status, content.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_blobs_is_parsed() {
        let xml = "<EnumerationResults><Blobs><Blob><Name>shop/a.db</Name><Properties><Content-Length>12</Content-Length>\
                   </Properties></Blob><Blob><Name>b</Name><Properties><Content-Length>0</Content-Length></Properties></Blob>\
                   </Blobs></EnumerationResults>";
        assert_eq!(blobs_in(xml).unwrap(), [("shop/a.db".to_owned(), 12), ("b".to_owned(), 0)]);
        assert!(blobs_in("<EnumerationResults><Blobs/></EnumerationResults>").unwrap().is_empty());
        assert_eq!(blobs_in("<Blob><Name>without a size</Name></Blob>"), None);
    }
}
