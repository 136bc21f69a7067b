//! What a running pod can be given is given to it while it runs.

use e2e::etcd::{Etcd, manifest};
use e2e::health::HEALING;
use e2e::{Namespace, SAFETY, eventually, is};
use serde_json::{Value, json};

use crate::container_of;

fn wait_until_all(etcd: &Etcd, what: &str, of: impl Fn(&str) -> Value, expected: &Value) {
    eventually(what, HEALING, || {
        etcd.names(3).iter().try_for_each(|name| is(&of(name), expected).map_err(|seen| format!("{name}: {seen}")))
    });
    etcd.wait_until_whole(3);
}

#[test]
fn labels_annotations_and_memory_change_without_restarts() {
    let namespace = Namespace::create("roll-in-place");
    let mut cluster = manifest("c", 3);
    let resources = json!({"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "300Mi"}});
    cluster["spec"]["podTemplate"] = json!({"resources": resources});
    let etcd = Etcd::create(&namespace, &cluster);
    let runs = || etcd.names(3).iter().map(|name| etcd.run_of(name)).collect::<Vec<_>>();
    let (pods, peers, before) = (etcd.uids_of("pods"), etcd.uids_of("etcdpeers"), runs());
    let template = |template: Value| etcd.patch(&json!({"spec": {"podTemplate": template}}));
    let metadata = |name: &str| {
        let pod = namespace.get(&format!("pod {name}"));
        let (labels, annotations) = (&pod["metadata"]["labels"], &pod["metadata"]["annotations"]);
        json!([labels["team"], labels["tier"], annotations["example.com/contact"]])
    };

    template(json!({"metadata": {"labels": {"team": "storage"}, "annotations": {"example.com/contact": "us"}}}));
    wait_until_all(&etcd, "the pods have label and annotation", metadata, &json!(["storage", null, "us"]));
    template(json!({"metadata": {"labels": {"team": null, "tier": "data"}, "annotations": null}}));
    wait_until_all(&etcd, "the old ones are gone", metadata, &json!([null, "data", null]));

    let resources = json!({"requests": {"cpu": "60m", "memory": "80Mi"}, "limits": {"cpu": "1", "memory": "400Mi"}});
    template(json!({"resources": resources}));
    let asked_for = |name: &str| container_of(&etcd, name)["resources"].clone();
    wait_until_all(&etcd, "the pods have the new resources", asked_for, &resources);
    let given = |name: &str| {
        let pod = namespace.get(&format!("pod {name}"));
        let containers = pod["status"]["containerStatuses"].as_array().cloned().unwrap_or_default();
        containers.iter().find(|it| it["name"] == "etcd").map(|it| it["resources"].clone()).unwrap_or_default()
    };
    wait_until_all(&etcd, "the kubelets gave them", given, &resources);

    assert_eq!(etcd.uids_of("pods"), pods, "{SAFETY}they are the same pods");
    assert_eq!(etcd.uids_of("etcdpeers"), peers, "{SAFETY}they have the same EtcdPeers");
    assert_eq!(runs(), before, "{SAFETY}and etcd was never restarted");
    assert_eq!(etcd.events("RecreatingMember"), []);
    for reason in ["PodRelabelled", "PodResized"] {
        let told: Vec<String> = etcd.events(reason).into_iter().map(|(about, _)| about).collect();
        assert!(etcd.names(3).iter().all(|name| told.contains(name)), "{reason} is not told of all: {told:?}");
    }
}
