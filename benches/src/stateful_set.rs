//! The yardstick: the plainest StatefulSet that starts three etcd members at once. It has no security context and no probe,
//! and etcd has no more flags than it needs.

use serde_json::json;

pub fn manifest(name: &str) -> String {
    let labels = json!({"app": name});
    let host = |pod: &str| format!("{pod}.{name}.$(NAMESPACE).svc.cluster.local");
    let members: Vec<String> = (0..3)
        .map(|ordinal| format!("{name}-{ordinal}"))
        .map(|pod| format!("{pod}=http://{}:2380", host(&pod)))
        .collect();
    let own = host("$(POD)");
    let args = [
        "--name=$(POD)".to_owned(),
        "--data-dir=/var/lib/etcd/data".to_owned(),
        "--listen-client-urls=http://0.0.0.0:2379".to_owned(),
        "--listen-peer-urls=http://0.0.0.0:2380".to_owned(),
        format!("--advertise-client-urls=http://{own}:2379"),
        format!("--initial-advertise-peer-urls=http://{own}:2380"),
        format!("--initial-cluster={}", members.join(",")),
        "--initial-cluster-state=new".to_owned(),
    ];
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let container = json!({
        "name": "etcd",
        "image": "quay.io/coreos/etcd:v3.6.16",
        "command": ["/usr/local/bin/etcd"],
        "args": args,
        "env": [field("POD", "metadata.name"), field("NAMESPACE", "metadata.namespace")],
        "volumeMounts": [{"name": "data", "mountPath": "/var/lib/etcd"}],
    });
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": true, "selector": labels,
            "ports": [{"name": "etcd-client", "port": 2379}, {"name": "etcd-peer", "port": 2380}]},
    });
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "50Mi"}}},
    });
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 3,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [claim],
        },
    });
    format!("{service}\n---\n{set}")
}
