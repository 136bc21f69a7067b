//! etcd crashes in pods of the earlier operator: its gate, which is still in them, starts etcd again.

use e2e::etcd::{Etcd, Members};
use e2e::{SAFETY, inject};

const KEY: &str = "greeting";
const VALUE: &str = "hello";

/// A member whose etcd was killed.
pub struct Crash<'a> {
    etcd: &'a Etcd<'a>,
    member: &'a str,
    run: Option<String>,
    pod: String,
    members: Members,
}

/// Writes what must be there after the crash.
pub fn prepare(etcd: &Etcd) {
    etcd.put(KEY, VALUE);
}

impl<'a> Crash<'a> {
    pub fn cause(etcd: &'a Etcd<'a>, member: &'a str) -> Self {
        let (run, pod, members) = (etcd.run_of(member), etcd.uids_of("pods")[member].clone(), etcd.members());
        inject::kill_container(&etcd.namespace.name, member, "etcd").unwrap();
        Crash { etcd, member, run, pod, members }
    }

    /// The member comes back in the same pod, as who it was, with its data.
    pub fn assert_survived(&self) {
        let Crash { etcd, member, run, pod, members } = self;
        etcd.wait_until_restarted(member, run);
        etcd.wait_until_whole(members.len() as u32);
        assert_eq!(etcd.uids_of("pods")[*member], *pod, "{SAFETY}{member} is in the same pod");
        assert_eq!(etcd.members(), *members, "{SAFETY}they are the same members");
        etcd.assert_has(KEY, VALUE);
        assert_eq!(etcd.value_on(member, KEY).as_deref(), Ok(VALUE), "{member} has its data");
    }
}
