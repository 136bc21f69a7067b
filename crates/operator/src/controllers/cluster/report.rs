//! The last stage of a reconcile: report to the user, in the status, in events and in metrics.

use etcd_operator_api::{Announced, EtcdCluster, EtcdClusterStatus, EtcdPeer, EventReason, Reason, Severity};
use etcd_operator_core::cluster::plan::Plan;
use etcd_operator_core::cluster::status::status_to_report;
use etcd_operator_core::notice::Notice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use kube::{Api, Client, ResourceExt};
use semver::Version;
use tracing::debug;

use super::observe::Observation;
use super::patches::{PeerRecord, StatusPatch, strictly};
use crate::controllers::context::Context;
use crate::objects::is_pod_of;
use crate::runtime::status::{self, Written};

/// Publishes an event about what the cluster waits for, once when the wait begins.
pub async fn announce_wait(plan: &Plan, cluster: &EtcdCluster, context: &Context) {
    let waiting = plan.waiting.as_ref().filter(|waiting| !waiting.reason.is_reported_by_its_step());
    let Some(waiting) = waiting else { return };
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions).filter(|it| it.type_ == "Progressing");
    // Something that needs user action is reported again if its message changes.
    let is_same = |message: &str| waiting.reason.severity() == Severity::Normal || message == waiting.message;
    let said = conditions.into_iter().any(|it| it.reason == waiting.reason.as_str() && is_same(&it.message));
    if !said {
        context.events.publish(cluster, &Notice::of(waiting.reason, &waiting.message)).await;
    }
}

/// Writes what was observed and is planned.
pub async fn report(
    plan: &Plan,
    observation: &Observation,
    cluster: &EtcdCluster,
    context: &Context,
) -> kube::Result<()> {
    context.metrics.record_members(&observation.observed);
    for (name, version) in write_versions(&context.client, observation).await? {
        let notice = Notice::of(EventReason::MemberRunning, format!("{name} runs etcd {version}")).about(name);
        context.events.publish(cluster, &notice).await;
    }
    let reported = cluster.status.clone().unwrap_or_default();
    let now = Time(jiff::Timestamp::now());
    let status = status_to_report(&observation.observed, plan, &reported, cluster.metadata.generation, &now);
    if status == reported {
        return Ok(());
    }
    debug!(?status, "reporting");
    match status::write(cluster, &status, &context.client).await? {
        Written::Yes => announce_news(&reported, &status, cluster, context).await,
        // The next reconcile finds out whether it is still so, and would publish all of it again.
        Written::Outdated => {}
    }
    Ok(())
}

/// Publishes events about what has changed: the cluster is no longer available, or all members match the spec.
async fn announce_news(before: &EtcdClusterStatus, now: &EtcdClusterStatus, cluster: &EtcdCluster, context: &Context) {
    let of = |status: &EtcdClusterStatus| status.conditions.iter().find(|it| it.type_ == "Available").cloned();
    let (was, is) = (of(before), of(now));
    let news = is.filter(|is| is.status == "False" && was.is_some_and(|was| was.reason != is.reason));
    if let Some(trouble) = news {
        let notice = Notice::of_failure(Reason::verbatim(trouble.reason), trouble.message);
        context.events.publish(cluster, &notice).await;
    }
    let is_done = |status: &EtcdClusterStatus| status.updated_replicas == cluster.spec.replicas;
    if is_done(now) && !is_done(before) {
        let note = format!("All {} members match the spec", cluster.spec.replicas);
        context.events.publish(cluster, &Notice::of(EventReason::UpToDate, note)).await;
    }
}

/// Records in each EtcdPeer the version of etcd that its member runs. Returns the members and versions that changed.
async fn write_versions(client: &Client, observation: &Observation) -> kube::Result<Vec<(String, String)>> {
    let mut news = Vec::new();
    let peers: Api<EtcdPeer> = Api::namespaced(client.clone(), &observation.observed.names.namespace);
    for (ordinal, answer) in &observation.observed.etcd.answers {
        let (Ok(answer), Some(peer)) = (answer, observation.objects.peers.get(ordinal)) else { continue };
        // The pod of an earlier EtcdPeer may still answer.
        if !observation.objects.pods.get(ordinal).is_some_and(|pod| is_pod_of(pod, peer)) {
            continue;
        }
        let known = peer.status.as_ref().and_then(|status| status.server_version.as_ref());
        let Some(version) = answer.version.as_ref().map(Version::to_string) else { continue };
        if known != Some(&version) {
            let status = PeerRecord::ServerVersion { server_version: version.clone() };
            match peers.patch_status(&peer.name_any(), &strictly(), &Patch::Merge(StatusPatch { status })).await {
                Err(kube::Error::Api(gone)) if gone.code == 404 => {}
                written => {
                    written?;
                    news.push((peer.name_any(), version));
                }
            }
        }
    }
    Ok(news)
}
