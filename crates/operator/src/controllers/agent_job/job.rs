//! The Job of an agent, and what the pods of all such Jobs have in common.

use std::collections::BTreeMap;
use std::time::Duration;

use etcd_operator_api::{Credentials, Decryption, JobPodTemplate, labels};
use etcd_operator_core::agent_job::AGENT;
use etcd_operator_protocol::report::FAILED_FOR_GOOD;
use etcd_operator_protocol::task::Task;
use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};

use super::APP_NAME;
use crate::objects::containers::{Settings, locked_down, unprivileged};
use crate::objects::{locations, owner_reference};

/// How long a finished agent job is kept. By then its result is long recorded.
const KEPT_FOR: i32 = 3600;

/// A Job to create.
pub struct AgentJob {
    pub name: String,
    /// The label that names the object which the job is run for.
    pub label: &'static str,
    pub pod: PodSpec,
    pub template: JobPodTemplate,
    pub retries: i32,
    pub deadline: Duration,
}

impl AgentJob {
    /// The Job, for the object that owns it.
    pub fn job<K: Resource<DynamicType = ()>>(&self, object: &K) -> Job {
        let own =
            BTreeMap::from([(labels::APP.to_owned(), APP_NAME.to_owned()), (self.label.to_owned(), object.name_any())]);
        let mut of_pod = self.template.labels();
        of_pod.extend(own.clone());
        let template = PodTemplateSpec {
            metadata: Some(ObjectMeta {
                labels: Some(of_pod),
                annotations: Some(self.template.annotations()),
                ..ObjectMeta::default()
            }),
            spec: Some(self.pod.clone()),
        };
        Job {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: object.namespace(),
                labels: Some(own),
                owner_references: Some(vec![owner_reference(object)]),
                ..ObjectMeta::default()
            },
            spec: Some(JobSpec {
                backoff_limit: Some(self.retries),
                active_deadline_seconds: Some(self.deadline.as_secs().cast_signed()),
                ttl_seconds_after_finished: Some(KEPT_FOR),
                pod_failure_policy: Some(no_retry_in_vain()),
                template,
                ..JobSpec::default()
            }),
            status: None,
        }
    }
}

/// The exit code of the agent says whether another try could succeed.
fn no_retry_in_vain() -> PodFailurePolicy {
    let on_exit_codes = PodFailurePolicyOnExitCodesRequirement {
        operator: "In".to_owned(),
        values: vec![i32::from(FAILED_FOR_GOOD)],
        ..PodFailurePolicyOnExitCodesRequirement::default()
    };
    let rule = PodFailurePolicyRule {
        action: "FailJob".to_owned(),
        on_exit_codes: Some(on_exit_codes),
        ..PodFailurePolicyRule::default()
    };
    PodFailurePolicy { rules: vec![rule] }
}

/// How a pod gets at the place where backups are.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    pub credentials: Option<&'a Credentials>,
    pub decryption: Option<&'a Decryption>,
    /// The claim of the volume that they are on, if they are on one.
    pub claim: Option<&'a str>,
}

/// What the pods of all agent jobs have in common.
pub fn pod(template: &JobPodTemplate, access: Access) -> PodSpec {
    PodSpec {
        restart_policy: Some("Never".to_owned()),
        termination_grace_period_seconds: Some(30),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        service_account_name: access.credentials.and_then(|it| it.service_account_name.clone()),
        security_context: Some(unprivileged()),
        affinity: template.affinity.clone(),
        tolerations: Some(template.tolerations.clone()),
        node_selector: Some(template.node_selector.clone()),
        priority_class_name: template.priority_class_name.clone(),
        image_pull_secrets: Some(template.image_pull_secrets.clone()),
        ..PodSpec::default()
    }
}

/// A pod with the agent alone.
pub fn pod_of_agent(
    task: &Task,
    access: Access,
    read_only: bool,
    template: &JobPodTemplate,
    settings: &Settings,
) -> PodSpec {
    let agent = Container {
        volume_mounts: access.claim.map(|_| vec![locations::claim_mount(read_only)]),
        ..agent(AGENT, task, access, template, settings)
    };
    PodSpec {
        containers: vec![agent],
        volumes: access.claim.map(|claim| vec![locations::claim_volume(claim, read_only)]),
        ..pod(template, access)
    }
}

/// A container with the operator's image that executes a task.
pub fn agent(name: &str, task: &Task, access: Access, template: &JobPodTemplate, settings: &Settings) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(settings.agent_image.clone()),
        image_pull_policy: settings.pull_policy.map(|policy| policy.as_str().to_owned()),
        command: Some(vec!["/agent".to_owned()]),
        env: Some(locations::environment(task, access.credentials, access.decryption)),
        resources: Some(template.resources.clone().unwrap_or_else(resources)),
        security_context: Some(locked_down()),
        termination_message_policy: Some("File".to_owned()),
        ..Container::default()
    }
}

/// The data is streamed, so memory does not depend on the size of the database.
fn resources() -> ResourceRequirements {
    let quantities = |all: &[(&str, &str)]| {
        Some(all.iter().map(|(name, quantity)| ((*name).to_owned(), Quantity((*quantity).to_owned()))).collect())
    };
    ResourceRequirements {
        requests: quantities(&[("cpu", "100m"), ("memory", "32Mi")]),
        limits: quantities(&[("memory", "64Mi")]),
        ..ResourceRequirements::default()
    }
}
