//! Stands between the agent and a member, and fails when enough has come through.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What it does to a connection through which the member has sent enough.
#[derive(Clone, Copy)]
pub enum Fault {
    /// Hang up.
    Cut,
    /// Let nothing more through, until the member hangs up.
    Stall,
}

pub struct Proxy {
    pub url: String,
    injected: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
}

impl Proxy {
    /// Its threads end with the process; there are few.
    pub fn start(member_url: &str, after_bytes: usize, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let member = member_url.strip_prefix("http://").unwrap().to_owned();
        let injected = Arc::new(AtomicBool::new(false));
        let connections = Arc::new(AtomicUsize::new(0));
        let (tell, count) = (Arc::clone(&injected), Arc::clone(&connections));
        thread::spawn(move || {
            for agent in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let member = TcpStream::connect(&member).unwrap();
                let (from_agent, to_member) = (agent.try_clone().unwrap(), member.try_clone().unwrap());
                thread::spawn(move || carry(&from_agent, &to_member, usize::MAX));
                let tell = Arc::clone(&tell);
                thread::spawn(move || {
                    carry(&member, &agent, after_bytes);
                    tell.store(true, Ordering::SeqCst);
                    if let Fault::Stall = fault {
                        let _ = io::copy(&mut &member, &mut io::sink());
                    }
                    for end in [agent, member] {
                        // It may be gone already.
                        let _ = end.shutdown(Shutdown::Both);
                    }
                });
            }
        });
        Self { url, injected, connections }
    }

    /// How many there were.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn wait_until_injected(&self) {
        let begin = Instant::now();
        while !self.injected.load(Ordering::SeqCst) {
            assert!(begin.elapsed() < Duration::from_secs(30), "too little came through");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Until one of the two hangs up, or as much came through as may.
fn carry(mut from: &TcpStream, mut to: &TcpStream, at_most: usize) {
    let mut carried = 0;
    let mut buffer = [0; 16384];
    while carried < at_most {
        match from.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(n) if to.write_all(&buffer[..n]).is_err() => return,
            Ok(n) => carried += n,
        }
    }
}
