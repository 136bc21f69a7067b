//! The Services and the PodDisruptionBudget.

use etcd_operator_core::cluster::observed::ServiceKind;
use etcd_operator_core::cluster::plan::{ClusterStep, Plan, Step};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};

use super::Fixture;
use crate::controllers::cluster::act::carry_out;
use crate::controllers::cluster::shared_objects::observe;
use crate::controllers::tests::api_server::Answer::{Echo, Object, Refusal};
use crate::runtime::watch::Cache;

const SERVICES: &str = "POST /api/v1/namespaces/n/services";
const GET_SERVICE: &str = "GET /api/v1/namespaces/n/services/c";
const PATCH_SERVICE: &str = "PATCH /api/v1/namespaces/n/services/c";
const BUDGETS: &str = "POST /apis/policy/v1/namespaces/n/poddisruptionbudgets";

fn shared_objects() -> Plan {
    let services = ServiceKind::ALL.map(ClusterStep::ApplyService);
    let budget = ClusterStep::ApplyDisruptionBudget { min_available: 1 };
    Plan::steps(services.into_iter().chain([budget]).map(Step::Cluster).collect())
}

/// The headless Service, owned by the object of a UID.
fn service(owner: &str) -> Value {
    let owner = json!({"apiVersion": "etcd.improbable.io/v1alpha1", "kind": "EtcdCluster", "name": "c", "uid": owner});
    let metadata = json!({"name": "c", "namespace": "n", "ownerReferences": [owner]});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata})
}

#[tokio::test]
async fn objects_that_are_missing_are_created_by_the_manager_that_applies_them() {
    let it = Fixture::new([(SERVICES, Echo), (SERVICES, Echo), (BUDGETS, Echo)]).await;
    carry_out(&shared_objects(), it.actor()).await.unwrap();
    for sent in it.api.sent() {
        assert_eq!(sent.query, "&fieldManager=etcd-operator&fieldValidation=Strict");
    }
    assert_eq!(it.api.events().len(), 3);
}

#[tokio::test]
async fn service_of_the_cluster_that_exists_is_applied() {
    let it = Fixture::new([
        (SERVICES, Refusal(409, "exists")),
        (GET_SERVICE, Object(service("uid-of-cluster"))),
        (PATCH_SERVICE, Echo),
        (SERVICES, Echo),
        (BUDGETS, Echo),
    ]);
    let it = it.await;
    carry_out(&shared_objects(), it.actor()).await.unwrap();
    let sent = it.api.sent();
    assert_eq!(sent[2].content_type, "application/apply-patch+yaml");
    assert_eq!(sent[2].query, "&force=true&fieldManager=etcd-operator&fieldValidation=Strict");
    assert_eq!(sent[2].body, sent[0].body, "all of it, with its kind");
    assert_eq!(sent[2].body["kind"], "Service");
}

#[tokio::test]
async fn service_of_another_owner_is_left_alone_and_blocks_nothing_else() {
    let it = Fixture::new([
        (SERVICES, Refusal(409, "exists")),
        (GET_SERVICE, Object(service("uid-of-another"))),
        (SERVICES, Echo),
        (BUDGETS, Echo),
    ]);
    let it = it.await;
    let error = carry_out(&shared_objects(), it.actor()).await.unwrap_err();
    assert_eq!(error.to_string(), "there is a Service c already that is not owned by this cluster");
    it.api.sent();
}

#[tokio::test]
async fn what_no_cache_shows_is_not_as_applied() {
    let it = Fixture::new([(SERVICES, Echo), (SERVICES, Echo), (BUDGETS, Echo)]).await;
    carry_out(&shared_objects(), it.actor()).await.unwrap();
    let seen = observe(&it.cluster, &it.context.caches, &it.context.memories.of("n", "c"));
    assert_eq!(seen, Default::default(), "somebody deleted it, or the cache is late");
    it.api.sent();
}

#[tokio::test]
async fn budget_is_applied_as_planned_and_counts_as_current_until_somebody_changes_it() {
    let applied = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "c", "namespace": "n", "resourceVersion": "9"},
        "spec": {"minAvailable": 3},
    });
    let mut it = Fixture::new([(BUDGETS, Object(applied.clone()))]).await;
    let plan = Plan::steps(vec![Step::Cluster(ClusterStep::ApplyDisruptionBudget { min_available: 3 })]);
    carry_out(&plan, it.actor()).await.unwrap();
    assert_eq!(it.api.sent()[0].body["spec"]["minAvailable"], 3);
    let mut budget: PodDisruptionBudget = serde_json::from_value(applied).unwrap();
    for (version, is_as_applied) in [("9", true), ("10", false)] {
        budget.metadata.resource_version = Some(version.to_owned());
        it.context.caches.budgets = Cache::holding(budget.clone());
        let seen = observe(&it.cluster, &it.context.caches, &it.context.memories.of("n", "c"));
        assert_eq!((seen.min_available, seen.budget_is_as_applied), (Some(3), is_as_applied), "version {version}");
    }
}
