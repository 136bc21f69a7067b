//! A client that writes to an etcd cluster and remembers what was acknowledged.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::etcd::{Etcd, etcdctl};
use crate::{Namespace, SAFETY};

/// Between two writes: the machine has other things to do as well.
const REST: Duration = Duration::from_millis(50);

/// A client that writes one key after another and remembers which were acknowledged.
pub struct Writer {
    stop: Arc<AtomicBool>,
    work: JoinHandle<Written>,
}

/// What a writer did.
pub struct Written {
    pub acknowledged: u64,
    pub longest_pause: Duration,
}

impl Writer {
    pub fn start(namespace: &Namespace, cluster: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, namespace, name) = (stop.clone(), Namespace::borrowed(&namespace.name), cluster.to_owned());
        let work = std::thread::spawn(move || {
            let etcd = Etcd { namespace: &namespace, name };
            let goes_on = |_| {
                std::thread::sleep(REST);
                !stopped.load(Ordering::SeqCst)
            };
            write_while(goes_on, &etcd)
        });
        Writer { stop, work }
    }

    pub fn finish(self) -> Written {
        self.stop.store(true, Ordering::SeqCst);
        self.work.join().expect("the writer ends")
    }
}

/// Writes some keys, for a test that wants to find them again.
pub fn write(count: u64, etcd: &Etcd) -> Written {
    write_while(|acknowledged| acknowledged < count, etcd)
}

/// Keys are `written/<number>`, counted up only when a write was acknowledged: each number below the count must be there.
fn write_while(go_on: impl Fn(u64) -> bool, etcd: &Etcd) -> Written {
    let mut written = Written { acknowledged: 0, longest_pause: Duration::ZERO };
    let (mut endpoints, mut last) = (etcd.endpoints(), Instant::now());
    while go_on(written.acknowledged) {
        let number = written.acknowledged;
        match etcdctl(&endpoints, &["put", &key(number), &number.to_string()]) {
            Ok(_) => {
                written.acknowledged += 1;
                written.longest_pause = written.longest_pause.max(last.elapsed());
                last = Instant::now();
            }
            // Not acknowledged, so nothing is known of it; the same key is written again.
            Err(_) => endpoints = etcd.endpoints(),
        }
        if number.is_multiple_of(20) {
            endpoints = etcd.endpoints();
        }
    }
    // A pause that has not ended is one too.
    written.longest_pause = written.longest_pause.max(last.elapsed());
    written
}

fn key(number: u64) -> String {
    format!("written/{number:06}")
}

impl Written {
    /// Every write that was acknowledged can be read. Tells how many there were, and the longest time without one.
    pub fn assert_kept(&self, etcd: &Etcd) {
        println!("{} writes, the longest pause {:?}", self.acknowledged, self.longest_pause);
        let keys = etcd.etcdctl(&["get", "written/", "--prefix", "--keys-only"]).expect("etcd lists the keys");
        let keys: BTreeSet<&str> = keys.lines().collect();
        assert!(self.acknowledged > 0, "nothing was written at all");
        let lost: Vec<u64> = (0..self.acknowledged).filter(|number| !keys.contains(key(*number).as_str())).collect();
        assert!(lost.is_empty(), "{SAFETY}of {} acknowledged writes these are lost: {lost:?}", self.acknowledged);
    }
}
