//! The operator itself is brought to another version, which is no reason to touch a cluster.

use std::time::Duration;

use e2e::etcd::{Etcd, manifest};
use e2e::{Namespace, eventually, is, kubectl, operator, stays};

#[test]
fn new_operator_restarts_no_member() {
    let namespace = Namespace::create("operator-new");
    let etcd = Etcd::create(&namespace, &manifest("c", 3));
    let runs = || etcd.names(3).iter().map(|name| etcd.run_of(name)).collect::<Vec<_>>();
    let objects = || (runs(), etcd.uids_of("pods"), etcd.uids_of("etcdpeers"), etcd.uids_of("pvc"));
    let before = objects();
    kubectl(&format!("{} rollout restart deployment etcd-operator", operator::IN_ITS_NAMESPACE));
    kubectl(&format!("{} rollout status deployment etcd-operator --timeout=120s", operator::IN_ITS_NAMESPACE));
    eventually("the new one leads", Duration::from_secs(60), operator::leader);
    // It has looked at the cluster when it has put something right.
    namespace.kubectl("delete service c-client");
    eventually("the Service is back", Duration::from_secs(60), || {
        is(etcd.names_of("services"), vec!["c".to_owned(), "c-client".to_owned()])
    });
    stays("nobody is restarted", Duration::from_secs(10), || is(objects(), before.clone()));
    etcd.wait_until_whole(3);
}
