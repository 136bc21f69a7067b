//! The faults that chaos chooses from at random.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use e2e::etcd::Etcd;
use e2e::outage::Outage;
use e2e::random::Random;
use e2e::{eventually, inject, operator, try_kubectl};
use lab::node::Node;

/// How long the cluster may take until it is whole again.
const PATIENCE: Duration = Duration::from_secs(300);

/// The versions between which a cluster goes up and down. It begins with the first.
const VERSIONS: [&str; 2] = ["3.6.16", "3.6.12"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    DeletePod,
    DeleteLeader,
    KillContainer,
    PauseContainer,
    WipeVolume,
    DeleteClaim,
    DeleteOperator,
    PowerOff,
    CutNetwork,
    Scale,
    ChangeVersion,
    Restart,
}

const ALL: [Fault; 12] = [
    Fault::DeletePod,
    Fault::DeleteLeader,
    Fault::KillContainer,
    Fault::PauseContainer,
    Fault::WipeVolume,
    Fault::DeleteClaim,
    Fault::DeleteOperator,
    Fault::PowerOff,
    Fault::CutNetwork,
    Fault::Scale,
    Fault::ChangeVersion,
    Fault::Restart,
];

impl Fault {
    /// Whether it takes a member's data away for good. The next such one must wait until the cluster is whole again, or
    /// a majority might lose theirs; anything else may come while it is healing.
    fn destroys_data(self) -> bool {
        matches!(self, Fault::WipeVolume | Fault::DeleteClaim)
    }
}

pub struct Chaos<'a> {
    pub etcd: &'a Etcd<'a>,
    pub random: Random,
    pub started: Instant,
    /// How many members there should be.
    pub size: u32,
    /// Which version of etcd they should run.
    pub version: &'static str,
    pub done: BTreeMap<Fault, u32>,
    incarnations: BTreeMap<String, Incarnation>,
}

/// Which member has a name at present, and how often that changed.
struct Incarnation {
    id: u64,
    began: Instant,
    earlier: u32,
}

impl<'a> Chaos<'a> {
    pub fn new(etcd: &'a Etcd<'a>, size: u32, seed: u64) -> Self {
        let (random, started) = (Random::new(seed), Instant::now());
        Chaos {
            etcd,
            random,
            started,
            size,
            version: VERSIONS[0],
            done: BTreeMap::new(),
            incarnations: BTreeMap::new(),
        }
    }

    pub fn say(&self, what: &str) {
        println!("{:7.1}s  {what}", self.started.elapsed().as_secs_f64());
    }

    pub fn wait_until_whole(&self) {
        let waited = Instant::now();
        eventually("the cluster is whole again", PATIENCE, || self.etcd.is_whole(self.size));
        self.say(&format!("whole, {:.1}s after it was asked for", waited.elapsed().as_secs_f64()));
    }

    /// Injects one fault, and undoes what would not end by itself.
    pub fn inject(&mut self) {
        self.note_incarnations();
        let fault = *self.random.pick(&ALL);
        let mut names = self.etcd.names(self.size);
        if fault.destroys_data() {
            self.wait_until_whole();
            names = self.who_may_lose_data();
            if names.is_empty() {
                return;
            }
        }
        let namespace = self.etcd.namespace.name.clone();
        let member = self.random.pick(&names).clone();
        let node = *self.random.pick(&Node::all().collect::<Vec<_>>());
        // The longest is longer than it takes until the members of a lost node are given up.
        let outage = Duration::from_secs(*self.random.pick(&[4, 8, 16, 70]));
        let pause = Duration::from_secs(*self.random.pick(&[4, 8, 25]));
        *self.done.entry(fault).or_default() += 1;
        match fault {
            Fault::DeletePod => {
                self.say(&format!("the pod {member} is deleted"));
                self.delete_pod(&member);
            }
            Fault::DeleteLeader => {
                let leader = self.etcd.leader();
                let name = leader.as_deref().unwrap_or("but none leads");
                self.say(&format!("the leader's pod is deleted: {name}"));
                leader.iter().for_each(|leader| self.delete_pod(leader));
            }
            Fault::KillContainer => {
                self.say(&format!("the container of {member} is killed"));
                self.may_fail(inject::kill_container(&namespace, &member, "etcd"));
            }
            Fault::PauseContainer => {
                self.say(&format!("the container of {member} hangs for {pause:?}"));
                let paused = inject::pause_container(&namespace, &member, "etcd");
                if paused.is_ok() {
                    std::thread::sleep(pause);
                    // By now it may be another container, if the operator has started the pod again.
                    self.may_fail(inject::resume_container(&namespace, &member, "etcd"));
                    self.say(&format!("the container of {member} may go on"));
                }
                self.may_fail(paused);
            }
            Fault::WipeVolume => {
                self.say(&format!("the volume of {member} is wiped and its pod deleted"));
                inject::wipe_volume(&namespace, &member);
                // Must succeed: as long as the pod runs on files that are gone, the member seems to be well.
                self.etcd.namespace.kubectl(&format!("delete pod {member} --now --ignore-not-found"));
            }
            Fault::DeleteClaim => {
                self.say(&format!("the claim and the pod of {member} are deleted"));
                self.etcd.namespace.kubectl(&format!("delete pvc {member} --wait=false"));
                self.etcd.namespace.kubectl(&format!("delete pod {member} --now --ignore-not-found"));
            }
            Fault::DeleteOperator => {
                self.say("the operator's pods are deleted");
                operator::delete_pods();
            }
            Fault::PowerOff => {
                self.say(&format!("{} is off for {outage:?}", node.name()));
                let node_outage = Outage::power_off(node);
                std::thread::sleep(outage);
                node_outage.end();
                self.say(&format!("{} is on", node.name()));
            }
            Fault::CutNetwork => {
                self.say(&format!("{} is cut from the network for {outage:?}", node.name()));
                let node_outage = Outage::cut(node);
                std::thread::sleep(outage);
                node_outage.end();
                self.say(&format!("{} is connected", node.name()));
            }
            Fault::Scale => {
                self.size = if self.size == 3 { 5 } else { 3 };
                self.say(&format!("scaled to {}", self.size));
                self.etcd.scale(self.size);
            }
            Fault::ChangeVersion => {
                self.version = if self.version == VERSIONS[0] { VERSIONS[1] } else { VERSIONS[0] };
                self.say(&format!("asked for {}", self.version));
                self.etcd.set_version(self.version);
            }
            Fault::Restart => {
                self.say("asked for a restart of all members");
                self.etcd.ask_for_a_restart(&format!("{}", self.started.elapsed().as_millis()));
            }
        }
        std::thread::sleep(Duration::from_millis(500 + self.random.below(6000)));
    }

    fn delete_pod(&self, name: &str) {
        let namespace = &self.etcd.namespace.name;
        let line = format!("--namespace {namespace} delete pod {name} --now --ignore-not-found --timeout=60s");
        self.may_fail(try_kubectl(&line).map(drop));
    }

    /// What is healing may not be there for a fault.
    fn may_fail(&self, result: Result<(), String>) {
        if let Err(complaint) = result {
            // In parentheses comes everything that the API server had to say.
            self.say(&format!("that failed: {}", complaint.split(" (").next().unwrap_or_default()));
        }
    }

    fn note_incarnations(&mut self) {
        // Without an answer nothing new is known.
        for (name, (id, _)) in self.etcd.try_members().unwrap_or_default() {
            let current = self.incarnations.entry(name).or_insert(Incarnation { id, began: self.started, earlier: 0 });
            if current.id != id {
                *current = Incarnation { id, began: Instant::now(), earlier: current.earlier + 1 };
            }
        }
    }

    /// The operator takes its time before it replaces a member of the same name once more: a minute, then two, then four.
    /// Chance would spend the hour waiting for that, so it leaves those alone for so long.
    fn who_may_lose_data(&mut self) -> Vec<String> {
        self.note_incarnations();
        let is_old_enough = |current: &Incarnation| {
            let wait = current.earlier.checked_sub(1).map_or(0, |doublings| 70 << doublings.min(6));
            current.began.elapsed() >= Duration::from_secs(wait)
        };
        let names = self.etcd.names(self.size);
        names.into_iter().filter(|name| self.incarnations.get(name).is_some_and(is_old_enough)).collect()
    }
}
