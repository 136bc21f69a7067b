//! A change that the earlier operator has begun and the new one finishes.

use std::time::Duration;

use e2e::etcd::{Etcd, Members};
use e2e::outage::Cordon;
use e2e::watch::Pods;
use e2e::writer::Writer;
use e2e::{SAFETY, eventually, is};
use lab::node::Node;

pub const OLD_VERSION: &str = "3.6.12";
const NEW_VERSION: &str = "3.6.16";
/// The first to be restarted: the last of those that do not lead.
const FIRST: &str = "rolling-2";

/// A rollout that is held in the middle: the node of its first member, where the volume is, does not take the new pod.
pub struct Rollout<'a> {
    etcd: &'a Etcd<'a>,
    members: Members,
    pods: Pods,
    writer: Writer,
    cordon: Cordon,
}

impl<'a> Rollout<'a> {
    pub fn begin(etcd: &'a Etcd<'a>) -> Self {
        etcd.move_leader("rolling-0");
        let (members, pods) = (etcd.members(), Pods::watch(etcd, 3));
        let writer = Writer::start(etcd.namespace, &etcd.name);
        let cordon = Cordon::begin(Node::named(&etcd.nodes()[FIRST]).unwrap());
        etcd.set_version(NEW_VERSION);
        let rollout = Rollout { etcd, members, pods, writer, cordon };
        eventually("the rollout is in the middle", Duration::from_secs(60), || rollout.is_in_the_middle());
        rollout
    }

    fn is_in_the_middle(&self) -> Result<(), String> {
        is(self.pods.made(), vec![FIRST.to_owned()])?;
        let pod = self.etcd.namespace.get(&format!("pod {FIRST}"));
        is(pod["status"]["phase"].as_str(), Some("Pending"))
    }

    /// As long as the first member is away nobody else is restarted, whichever operator leads.
    pub fn assert_is_held(&self) {
        assert_eq!(self.is_in_the_middle(), Ok(()), "{SAFETY}only {FIRST} is away");
    }

    /// Lets it go on to its end.
    pub fn finish(self) {
        let Rollout { etcd, members, pods, writer, cordon } = self;
        drop(cordon);
        etcd.wait_until_runs(3, NEW_VERSION);
        let written = writer.finish();
        written.assert_kept(etcd);
        etcd.assert_same_data(3);
        assert_eq!(etcd.members(), members, "{SAFETY}they are the same members");
        assert_eq!(pods.made(), ["rolling-2", "rolling-1", "rolling-0"], "each was restarted once");
        assert!(pods.most_away().len() <= 1, "{SAFETY}these were away at the same time: {:?}", pods.most_away());
        assert!(written.longest_pause < Duration::from_secs(20), "nothing was written for {:?}", written.longest_pause);
    }
}
