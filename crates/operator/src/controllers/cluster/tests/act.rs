//! What becomes of the API server's answers to single steps.

use etcd_operator_core::cluster::observed::{ClusterId, DataState, ExpectedData, Identity, MemberId};
use etcd_operator_core::cluster::plan::{Model, Start, Step};
use etcd_operator_core::cluster::step::{ClusterStep, MemberStep};
use etcd_operator_core::ordinal::Ordinal;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::{Fixture, peer, pod};
use crate::controllers::cluster::errors::Error;
use crate::controllers::tests::api_server::Answer::{Echo, Lost, Object, Refusal};
use crate::objects::annotations::RESIZE_REFUSED;
use crate::objects::member_labels;
use crate::runtime::status::{self, Written};

const CREATE_POD: &str = "POST /api/v1/namespaces/n/pods";
const GET_POD: &str = "GET /api/v1/namespaces/n/pods/c-0";
const PATCH_POD: &str = "PATCH /api/v1/namespaces/n/pods/c-0";
const DELETE_POD: &str = "DELETE /api/v1/namespaces/n/pods/c-0";
const RESIZE_POD: &str = "PATCH /api/v1/namespaces/n/pods/c-0/resize";
const CREATE_PEER: &str = "POST /apis/etcd.improbable.io/v1alpha1/namespaces/n/etcdpeers";
const GET_PEER: &str = "GET /apis/etcd.improbable.io/v1alpha1/namespaces/n/etcdpeers/c-0";
const PATCH_PEER: &str = "PATCH /apis/etcd.improbable.io/v1alpha1/namespaces/n/etcdpeers/c-0";
const PATCH_STATUS: &str = "PATCH /apis/etcd.improbable.io/v1alpha1/namespaces/n/etcdclusters/c/status";

const EXISTS: &str = "pods \"c-0\" already exists";

/// Creates the pod of a member that joins: nothing has to be confirmed first.
fn create_pod() -> Step {
    let identity = Identity { member_id: MemberId(1), cluster_id: ClusterId(7) };
    let start = Start {
        bootstrap_token: None,
        initial_cluster: vec![("c-0".into(), "http://c-0:2380".into())],
        expected: ExpectedData { data: DataState::New, identity: Some(identity) },
        serves_clients: false,
    };
    Step::Member(Ordinal(0), MemberStep::CreatePod { start })
}

fn create_peer() -> Step {
    Step::Member(Ordinal(0), MemberStep::CreatePeer { initial: false, model: Model::Spec })
}

#[tokio::test]
async fn pod_that_is_created_is_told_as_an_event() {
    let it = Fixture::new([(CREATE_POD, Echo)]).await;
    it.actor().take(&create_pod()).await.unwrap();
    assert_eq!(it.api.sent()[0].body["metadata"]["ownerReferences"][0]["uid"], "uid-of-peer");
    assert_eq!(it.api.events(), [("PodCreated".to_owned(), "Created the pod c-0".to_owned())]);
}

#[tokio::test]
async fn refused_creation_names_the_object_and_the_reason() {
    for (code, sentence) in [
        (403, "pods \"c-0\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3"),
        (422, "Pod \"c-0\" is invalid: spec.priorityClassName: no PriorityClass of that name"),
        (400, "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.x\""),
    ] {
        let it = Fixture::new([(CREATE_POD, Refusal(code, sentence))]).await;
        let error = it.actor().take(&create_pod()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("creating the Pod c-0: {sentence}"));
        it.api.sent();
        assert_eq!(it.api.events(), [], "it was not created");
    }
}

#[tokio::test]
async fn pod_of_the_same_peer_that_exists_gets_its_labels_back() {
    let it =
        Fixture::new([(CREATE_POD, Refusal(409, EXISTS)), (GET_POD, Object(pod("uid-of-peer"))), (PATCH_POD, Echo)]);
    let it = it.await;
    let error = it.actor().take(&create_pod()).await.unwrap_err();
    assert!(matches!(&error, Error::OutOfDate(why) if why == "there is a pod c-0 already"), "{error}");
    assert_eq!(it.api.sent()[2].body, json!({"metadata": {"labels": member_labels("c", "c-0")}}));
}

#[tokio::test]
async fn pod_of_another_owner_is_left_alone() {
    let it = Fixture::new([(CREATE_POD, Refusal(409, EXISTS)), (GET_POD, Object(pod("uid-of-another")))]).await;
    let error = it.actor().take(&create_pod()).await.unwrap_err();
    let expected = "there is a pod c-0 already, and it is not owned by this cluster";
    assert!(matches!(&error, Error::Impossible(why) if why == expected), "{error}");
    it.api.sent();
}

#[tokio::test]
async fn pod_that_is_still_terminating_is_waited_for() {
    let mut old = pod("uid-of-an-earlier-peer");
    old["metadata"]["deletionTimestamp"] = json!("2026-11-18T07:00:00Z");
    let it = Fixture::new([(CREATE_POD, Refusal(409, EXISTS)), (GET_POD, Object(old))]).await;
    let error = it.actor().take(&create_pod()).await.unwrap_err();
    assert!(matches!(&error, Error::OutOfDate(why) if why == "the old pod c-0 is still stopping"), "{error}");
    it.api.sent();
}

#[tokio::test]
async fn pod_whose_creation_was_not_answered_is_found_by_the_next_try() {
    let it = Fixture::new([
        (CREATE_POD, Lost),
        (CREATE_POD, Refusal(409, EXISTS)),
        (GET_POD, Object(pod("uid-of-peer"))),
        (PATCH_POD, Echo),
    ]);
    let it = it.await;
    let error = it.actor().take(&create_pod()).await.unwrap_err().to_string();
    assert!(error.starts_with("creating the Pod c-0: ") && error.contains("connection closed"), "{error}");
    let error = it.actor().take(&create_pod()).await.unwrap_err();
    assert!(matches!(&error, Error::OutOfDate(_)), "the next plan is made with the pod that exists: {error}");
    it.api.sent();
}

#[tokio::test]
async fn peer_whose_creation_was_not_answered_is_found_by_the_next_try() {
    let found = json!(peer());
    let it = Fixture::new([
        (CREATE_PEER, Lost),
        (CREATE_PEER, Refusal(409, "etcdpeers \"c-0\" already exists")),
        (PATCH_PEER, Object(found.clone())),
        (GET_PEER, Object(found)),
    ]);
    let it = it.await;
    let error = it.actor().take(&create_peer()).await.unwrap_err().to_string();
    assert!(error.starts_with("creating the EtcdPeer c-0: "), "{error}");
    it.actor().take(&create_peer()).await.unwrap();
    let sent = it.api.sent();
    assert_eq!(sent[0].body, sent[1].body, "the same EtcdPeer both times");
}

#[tokio::test]
async fn deletion_of_an_object_that_is_gone_succeeds() {
    let it = Fixture::new([(DELETE_POD, Refusal(404, "pods \"c-0\" not found"))]).await;
    it.actor().delete::<Pod>("c-0", Some("uid-of-pod".into()), Some(1)).await.unwrap();
    let body = &it.api.sent()[0].body;
    assert_eq!((&body["preconditions"]["uid"], &body["gracePeriodSeconds"]), (&json!("uid-of-pod"), &json!(1)));
}

#[tokio::test]
async fn deletion_of_an_object_with_another_uid_is_out_of_date() {
    let conflict = "the UID in the precondition (uid-of-pod) does not match the UID in record (another)";
    let it = Fixture::new([(DELETE_POD, Refusal(409, conflict))]).await;
    let error = it.actor().delete::<Pod>("c-0", Some("uid-of-pod".into()), None).await.unwrap_err();
    assert!(matches!(&error, Error::OutOfDate(why) if why == "c-0 has changed"), "{error}");
    it.api.sent();
}

#[tokio::test]
async fn refused_deletion_names_the_object_and_the_reason() {
    let it = Fixture::new([(DELETE_POD, Refusal(403, "pods \"c-0\" is forbidden"))]).await;
    let error = it.actor().delete::<Pod>("c-0", None, None).await.unwrap_err();
    assert_eq!(error.to_string(), "deleting the Pod c-0: pods \"c-0\" is forbidden");
}

#[tokio::test]
async fn status_of_a_cluster_that_changed_or_is_gone_is_not_written() {
    for code in [404, 409] {
        let it =
            Fixture::new([(PATCH_STATUS, Refusal(code, "changed")), (PATCH_STATUS, Refusal(code, "changed"))]).await;
        let status = it.cluster.status.clone().unwrap_or_default();
        let written = status::write(&it.cluster, &status, &it.context.client).await.unwrap();
        assert!(matches!(written, Written::Outdated));
        let error = it
            .actor()
            .take(&Step::Cluster(ClusterStep::RecordLogVersion(semver::Version::new(3, 6, 16))))
            .await
            .unwrap_err();
        assert!(matches!(&error, Error::OutOfDate(why) if why == "the EtcdCluster has changed"), "{error}");
        let sent = &it.api.sent()[1];
        assert_eq!(sent.content_type, "application/apply-patch+yaml");
        assert!(sent.query.contains("fieldManager=etcd-operator") && sent.query.contains("force=true"));
        assert_eq!(sent.body["metadata"], json!({"resourceVersion": "7"}));
        assert_eq!(sent.body["status"]["oldestLogVersion"], "3.6.16");
    }
}

#[tokio::test]
async fn refused_resize_is_annotated_and_told_as_an_event() {
    let it = Fixture::new([(RESIZE_POD, Refusal(422, "qos class may not change")), (PATCH_POD, Echo)]).await;
    it.actor().take(&Step::Member(Ordinal(0), MemberStep::Resize)).await.unwrap();
    let sent = it.api.sent();
    let etcd = json!({"name": "etcd", "resources": {"limits": {"memory": "2Gi"}}});
    assert_eq!(sent[0].body, json!({"spec": {"containers": [etcd]}}));
    assert_eq!(sent[0].content_type, "application/strategic-merge-patch+json");
    let refused = r#"{"limits":{"memory":"2Gi"}}"#;
    assert_eq!(sent[1].body, json!({"metadata": {"annotations": {RESIZE_REFUSED: refused}}}));
    let note = "Pod c-0 cannot be resized in place: qos class may not change".to_owned();
    assert_eq!(it.api.events(), [("ResizeRefused".to_owned(), note)]);
}

#[tokio::test]
async fn resize_is_recorded_in_the_peer_with_the_version_that_was_read() {
    let it = Fixture::new([
        (RESIZE_POD, Object(pod("uid-of-peer"))),
        (PATCH_POD, Echo),
        (PATCH_PEER, Object(json!(peer()))),
    ]);
    let it = it.await;
    it.actor().take(&Step::Member(Ordinal(0), MemberStep::Resize)).await.unwrap();
    let template = json!({"podTemplate": {"resources": {"limits": {"memory": "2Gi"}}}});
    assert_eq!(it.api.sent()[2].body["spec"], template);
    assert_eq!(it.api.events()[0].0, "PodResized");
}
