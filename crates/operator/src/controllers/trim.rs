//! What the caches keep of objects: only what reconciles read. A pod is cut to a third, and pods are most of what is
//! cached for a fleet.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, PersistentVolumeClaim, Pod, PodSpec, PodStatus, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

/// Of a pod: its node, the resources of its containers, and how it is.
pub fn pod(pod: &mut Pod) {
    pod.spec = pod.spec.take().map(|spec| PodSpec {
        node_name: spec.node_name,
        containers: spec.containers.into_iter().map(name_and_resources).collect(),
        ..PodSpec::default()
    });
    pod.status = pod.status.take().map(|status| PodStatus {
        phase: status.phase,
        pod_ip: status.pod_ip,
        conditions: status.conditions,
        init_container_statuses: status.init_container_statuses.map(states),
        container_statuses: status.container_statuses.map(states),
        ..PodStatus::default()
    });
}

fn name_and_resources(container: Container) -> Container {
    Container { name: container.name, resources: container.resources, ..Container::default() }
}

fn states(containers: Vec<ContainerStatus>) -> Vec<ContainerStatus> {
    let state = |it: ContainerStatus| ContainerStatus {
        name: it.name,
        ready: it.ready,
        restart_count: it.restart_count,
        state: it.state,
        last_state: it.last_state,
        ..ContainerStatus::default()
    };
    containers.into_iter().map(state).collect()
}

/// Of a claim: what was asked for, and its capacity.
pub fn claim(claim: &mut PersistentVolumeClaim) {
    if let Some(status) = &mut claim.status {
        status.conditions = None;
    }
}

/// Of a Service: its metadata. Whether it is as applied shows in its resource version.
pub fn service(service: &mut Service) {
    (service.spec, service.status) = (None, None);
}

/// Of a PodDisruptionBudget: its metadata, as with Services.
pub fn budget(budget: &mut PodDisruptionBudget) {
    (budget.spec, budget.status) = (None, None);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::pod_problem::problem_of;

    #[test]
    fn trimmed_pod_still_shows_its_node_resources_address_and_problem() {
        let whole: Pod = serde_json::from_value(json!({
            "metadata": {"name": "c-0", "annotations": {"a": "b"}, "labels": {"c": "d"}},
            "spec": {
                "nodeName": "node1",
                "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [{
                    "name": "etcd", "image": "i", "args": ["--flag"], "env": [{"name": "E", "value": "v"}],
                    "resources": {"requests": {"cpu": "1"}},
                }],
            },
            "status": {
                "phase": "Pending", "podIP": "10.0.0.1", "qosClass": "Burstable",
                "conditions": [{"type": "Ready", "status": "False"}],
                "initContainerStatuses": [{
                    "name": "gate", "image": "i", "imageID": "j", "ready": false, "restartCount": 2,
                    "state": {"terminated": {"exitCode": 1, "message": "refused: its data is gone"}},
                }],
            },
        }))
        .unwrap();
        let mut trimmed = whole.clone();
        pod(&mut trimmed);
        assert!(problem_of(&whole).is_some());
        assert_eq!(problem_of(&trimmed), problem_of(&whole));
        assert_eq!(trimmed.metadata, whole.metadata);
        let (spec, status) = (trimmed.spec.unwrap(), trimmed.status.unwrap());
        assert_eq!(spec.node_name.as_deref(), Some("node1"));
        assert_eq!(spec.containers[0].resources, whole.spec.unwrap().containers[0].resources);
        assert_eq!((spec.volumes, spec.containers[0].args.clone()), (None, None));
        assert_eq!(status.pod_ip.as_deref(), Some("10.0.0.1"));
        assert_eq!(status.conditions, whole.status.unwrap().conditions);
        assert_eq!(status.init_container_statuses.unwrap()[0].restart_count, 2);
    }
}
