//! When each member answers for the first time: as soon as its pod has an address, it is asked every few milliseconds.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::sightings::Watch;

/// Between two questions to one member.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a member may take for an answer. Without a leader it says so at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// Waits until that many members answer: name of the pod → when.
pub fn wait_for(members: usize, watch: &Watch, limit: Duration) -> BTreeMap<String, Timestamp> {
    let deadline = Instant::now() + limit;
    let (send, receive) = mpsc::channel();
    let (mut asked, mut answers) = (BTreeSet::new(), BTreeMap::new());
    while answers.len() < members {
        for (name, address) in watch.addresses() {
            if asked.insert(name.clone()) {
                let send = send.clone();
                thread::spawn(move || {
                    let answered = first_answer(SocketAddr::new(address, 2379), deadline);
                    // Nobody listens any more if another member never answered.
                    let _ = send.send((name, answered));
                });
            }
        }
        if let Ok((name, answered)) = receive.recv_timeout(Duration::from_millis(10)) {
            let answered = answered.unwrap_or_else(|last| panic!("{name} does not answer: {last}"));
            answers.insert(name, answered);
        }
        assert!(Instant::now() < deadline, "after {limit:?} only these answer: {:?}", answers.keys());
    }
    answers
}

fn first_answer(address: SocketAddr, deadline: Instant) -> Result<Timestamp, String> {
    loop {
        match ask(address) {
            Ok(answer) if answer.contains(r#""health":"true""#) => return Ok(Timestamp::now()),
            last if Instant::now() > deadline => return Err(format!("{last:?}")),
            _ => thread::sleep(PAUSE),
        }
    }
}

/// Asks for a read that needs a quorum: this is what etcd does for its `/health`.
fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut member = TcpStream::connect_timeout(&address, PATIENCE)?;
    member.set_read_timeout(Some(PATIENCE))?;
    member.write_all(format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    member.read_to_string(&mut answer)?;
    Ok(answer)
}
