//! Clients that write and read all the time, remember what was acknowledged, and complain about what is not as it should be.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use e2e::etcd::Etcd;
use e2e::gateway::{get, put, put_after};
use e2e::random::Random;
use e2e::{Namespace, SAFETY};

const WRITERS: usize = 4;
const READERS: u64 = 2;
/// Between two requests of one client: the machine has other things to do as well.
const REST: Duration = Duration::from_millis(50);

pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What a load did, after it has ended.
pub struct Outcome {
    pub acknowledged: u64,
    pub reads: u64,
    /// The longest time without a successful write, and when it began.
    pub longest_gap: Duration,
    pub gap_began: Duration,
    shared: Arc<Shared>,
}

struct Shared {
    stop: AtomicBool,
    urls: Mutex<Vec<String>>,
    writers: [Acknowledged; WRITERS],
    pulse: Mutex<Pulse>,
    reads: AtomicU64,
    complaints: Mutex<Vec<String>>,
}

/// What a writer knows to be written: keys that are written once, and a counter that is overwritten.
#[derive(Default)]
struct Acknowledged {
    keys: AtomicU64,
    counter: AtomicU64,
}

/// When something was last written, by whomever.
struct Pulse {
    started: Instant,
    last: Instant,
    longest_gap: Duration,
    gap_began: Duration,
    count: u64,
}

impl Load {
    pub fn start(namespace: &Namespace, cluster: &str) -> Self {
        let now = Instant::now();
        let pulse = Pulse { started: now, last: now, longest_gap: Duration::ZERO, gap_began: Duration::ZERO, count: 0 };
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            urls: Mutex::default(),
            writers: Default::default(),
            pulse: Mutex::new(pulse),
            reads: AtomicU64::new(0),
            complaints: Mutex::default(),
        });
        let (namespace, cluster) = (namespace.name.clone(), cluster.to_owned());
        let watched = shared.clone();
        let mut threads = vec![std::thread::spawn(move || watched.follow_the_members(&namespace, cluster))];
        for writer in 0..WRITERS {
            let shared = shared.clone();
            threads.push(std::thread::spawn(move || shared.write(writer)));
        }
        for reader in 0..READERS {
            let shared = shared.clone();
            threads.push(std::thread::spawn(move || shared.read(reader)));
        }
        Load { shared, threads }
    }

    /// What was found wrong so far.
    pub fn complaints(&self) -> Vec<String> {
        self.shared.complaints.lock().unwrap().clone()
    }

    pub fn finish(self) -> Outcome {
        self.shared.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().expect("no client panics");
        }
        let shared = self.shared;
        let pulse = shared.pulse.lock().unwrap();
        Outcome {
            acknowledged: pulse.count,
            reads: shared.reads.load(Ordering::SeqCst),
            longest_gap: pulse.longest_gap,
            gap_began: pulse.gap_began,
            shared: shared.clone(),
        }
    }
}

impl Outcome {
    /// Everything that was acknowledged is there, as `etcdctl` sees it, and nobody ever saw anything else.
    pub fn assert_kept(&self, etcd: &Etcd) {
        assert_eq!(*self.shared.complaints.lock().unwrap(), Vec::<String>::new(), "{SAFETY}what clients saw");
        assert!(self.acknowledged > 0, "nothing was written at all");
        for (writer, acknowledged) in self.shared.writers.iter().enumerate() {
            let found = pairs(etcd, &format!("keys/{writer}/"));
            let is_lost = |number: &u64| found.get(&key(writer, *number)) != Some(&value(writer, *number));
            let lost: Vec<u64> = (0..acknowledged.keys.load(Ordering::SeqCst)).filter(is_lost).collect();
            assert!(
                lost.is_empty(),
                "{SAFETY}of the keys that writer {writer} knows to be written these are lost: {lost:?}"
            );
            let (counter, known) = (etcd.value(&counter(writer)), acknowledged.counter.load(Ordering::SeqCst));
            let counted = counter.as_deref().unwrap_or("0").parse::<u64>();
            assert!(
                counted.as_ref().is_ok_and(|it| *it >= known),
                "{SAFETY}writer {writer} counted to {known}: {counted:?}"
            );
        }
    }
}

/// All keys with a prefix, and their values.
fn pairs(etcd: &Etcd, prefix: &str) -> BTreeMap<String, String> {
    let listed = etcd.etcdctl(&["get", prefix, "--prefix", "--command-timeout=60s"]).expect("etcd lists the keys");
    let lines: Vec<&str> = listed.lines().collect();
    lines.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

fn key(writer: usize, number: u64) -> String {
    format!("keys/{writer}/{number:08}")
}

fn value(writer: usize, number: u64) -> String {
    format!("number {number} of {writer}")
}

fn counter(writer: usize) -> String {
    format!("counters/{writer}")
}

/// A client's way to one of the members. It stays with it until it fails.
struct Way<'a> {
    shared: &'a Shared,
    member: usize,
}

impl Way<'_> {
    fn ask<T>(&mut self, request: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let urls = self.shared.urls.lock().unwrap().clone();
        let url = urls.get(self.member % urls.len().max(1))?;
        let answer = request(url).ok();
        if answer.is_none() {
            self.member += 1;
        }
        answer
    }
}

impl Shared {
    fn goes_on(&self) -> bool {
        std::thread::sleep(REST);
        !self.stop.load(Ordering::SeqCst)
    }

    /// Members move, and get new addresses.
    fn follow_the_members(&self, namespace: &str, cluster: String) {
        let namespace = Namespace::borrowed(namespace);
        let etcd = Etcd { namespace: &namespace, name: cluster };
        while self.goes_on() {
            let urls: Vec<String> = etcd.urls().into_values().collect();
            if !urls.is_empty() {
                *self.urls.lock().unwrap() = urls;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    fn write(&self, writer: usize) {
        let own = &self.writers[writer];
        let mut way = Way { shared: self, member: writer };
        // The revision that the counter was last written in.
        let mut revision = 0;
        while self.goes_on() {
            let number = own.keys.load(Ordering::SeqCst);
            // If it isn't acknowledged, nothing is known of it, and the same is written again.
            if way.ask(|url| put(url, &key(writer, number), &value(writer, number))).is_some() {
                own.keys.store(number + 1, Ordering::SeqCst);
                self.beat();
            }
            // A write whose answer was lost may be carried out much later, when it would turn the counter back. So each is
            // tied to the one before.
            let next = own.counter.load(Ordering::SeqCst) + 1;
            match way.ask(|url| put_after(url, &counter(writer), revision, &next.to_string())) {
                Some(Some(written)) => {
                    revision = written;
                    own.counter.store(next, Ordering::SeqCst);
                    self.beat();
                }
                _ => revision = self.count_again(writer, &mut way).unwrap_or(revision),
            }
        }
    }

    /// Finds out how far the counter really is, after a write of which nothing is known.
    fn count_again(&self, writer: usize, way: &mut Way) -> Option<u64> {
        let known = self.writers[writer].counter.load(Ordering::SeqCst);
        let found = way.ask(|url| get(url, &counter(writer)))?;
        let count = found.as_ref().map_or(Ok(0), |found| found.value.parse::<u64>());
        match count {
            Ok(count) if count >= known => self.writers[writer].counter.store(count, Ordering::SeqCst),
            _ => self.complain(format!("the counter of writer {writer} was {known} and is {found:?}")),
        }
        Some(found.map_or(0, |found| found.revision))
    }

    fn read(&self, reader: u64) {
        let mut random = Random::new(reader);
        let mut way = Way { shared: self, member: reader as usize };
        let mut seen = [0; WRITERS];
        while self.goes_on() {
            let writer = random.below(WRITERS as u64) as usize;
            // What was known before the question must be in the answer.
            let keys = self.writers[writer].keys.load(Ordering::SeqCst);
            let counted = self.writers[writer].counter.load(Ordering::SeqCst).max(seen[writer]);
            if let Some(found) = way.ask(|url| get(url, &counter(writer))) {
                let count = found.as_ref().map_or(Ok(0), |found| found.value.parse::<u64>());
                match count {
                    Ok(count) if count >= counted => seen[writer] = count,
                    _ => self.complain(format!("the counter of writer {writer} was {counted} and is {found:?}")),
                }
                self.reads.fetch_add(1, Ordering::SeqCst);
            }
            if keys == 0 {
                continue;
            }
            let number = random.below(keys);
            if let Some(found) = way.ask(|url| get(url, &key(writer, number))) {
                if found.as_ref().map(|found| &found.value) != Some(&value(writer, number)) {
                    self.complain(format!("{} was acknowledged and is {found:?}", key(writer, number)));
                }
                self.reads.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn beat(&self) {
        let mut pulse = self.pulse.lock().unwrap();
        let gap = pulse.last.elapsed();
        if gap > pulse.longest_gap {
            (pulse.longest_gap, pulse.gap_began) = (gap, pulse.last - pulse.started);
        }
        pulse.last = Instant::now();
        pulse.count += 1;
    }

    fn complain(&self, complaint: String) {
        self.complaints.lock().unwrap().push(complaint);
    }
}
