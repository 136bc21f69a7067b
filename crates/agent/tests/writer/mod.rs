//! Writes to a member all the time, faster than etcdctl could be started.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Changes a key again and again, and compacts away all that was before every now and then, until it is told to stop.
pub struct Writer {
    enough: Arc<AtomicBool>,
    newest: Arc<AtomicI64>,
    thread: JoinHandle<()>,
}

impl Writer {
    pub fn start(member_url: &str, revision: i64) -> Self {
        let member = member_url.strip_prefix("http://").unwrap().to_owned();
        let (enough, newest) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(revision)));
        let (until, tell) = (Arc::clone(&enough), Arc::clone(&newest));
        let thread = thread::spawn(move || {
            while !until.load(Ordering::SeqCst) {
                post(&member, "/v3/kv/put", r#"{"key":"a2V5","value":"dmFsdWU="}"#);
                let newest = tell.fetch_add(1, Ordering::SeqCst) + 1;
                if newest % 50 == 0 {
                    post(&member, "/v3/kv/compaction", &format!(r#"{{"revision":"{newest}"}}"#));
                }
            }
        });
        Self { enough, newest, thread }
    }

    pub fn wait_for(&self, revision: i64) {
        let begin = Instant::now();
        while self.newest.load(Ordering::SeqCst) < revision {
            assert!(begin.elapsed() < Duration::from_secs(30), "waited too long for revision {revision}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn stop(self) {
        self.enough.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
    }
}

/// Over etcd's HTTP gateway.
fn post(member: &str, path: &str, body: &str) {
    let mut connection = TcpStream::connect(member).unwrap();
    let head = format!("POST {path} HTTP/1.0\r\nHost: {member}\r\nContent-Length: {}\r\n\r\n", body.len());
    connection.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
}
