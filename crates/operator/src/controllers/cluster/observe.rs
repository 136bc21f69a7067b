//! The first stage of a reconcile: observe the cluster, from the caches and from etcd itself. Nothing is decided here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use etcd_operator_api::{EtcdCluster, EtcdClusterStatus, EtcdPeer, MemberId, MemberRole};
use etcd_operator_core::cluster::corruption::Hash;
use etcd_operator_core::cluster::corruption_history::Occasion;
use etcd_operator_core::cluster::observed::{
    Bootstrap, Claim, Defragmentation, Etcd, Identity, Member, Objects, Observed, Peer as ObservedPeer,
    Pod as ObservedPod, Recorded, Remembered, Replacement, Wanted,
};
use etcd_operator_core::cluster::volumes::misfit_of;
use etcd_operator_core::names::ClusterNames;
use etcd_operator_core::ordinal::Ordinal;
use etcd_operator_etcd::Status;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use semver::Version;

use super::corruption_check::{ComparedVoter, compare};
use super::member_objects::{MemberObjects, node_of_pod};
use super::probe::{Endpoints, Probe, cluster_version, probe_members};
use super::volumes::{obstacles_to_growth, should_grow};
use super::{node, shared_objects, spec_diff, upgrade_backup};
use crate::controllers::context::Context;
use crate::objects::annotations::{
    DATA_VERSION, LEAVING_SINCE, PAUSED, ROLE, VOTER, read_bootstrap, read_expected_data, read_identity,
};
use crate::objects::claim::has_strayed;
use crate::objects::pod_problem;
use crate::objects::restore_containers::{FETCH, RESTORE};

/// More members than any cluster has. The API server enforces a limit on the spec, but not on what is recorded
/// elsewhere.
const MOST_MEMBERS: u32 = 99;

/// What was observed, as input for decisions, and the objects behind it.
pub struct Observation {
    pub observed: Observed,
    pub endpoints: Endpoints,
    pub objects: MemberObjects,
    /// The hash of each voter's data, if it was due to compare them. Empty if they could not be read.
    pub hashes: Option<BTreeMap<MemberId, Hash>>,
}

/// The data of a cluster's members is compared as often as its spec says.
pub fn every_so_often(cluster: &EtcdCluster) -> Occasion {
    Occasion::Every(cluster.spec.compare_every().map(signed))
}

/// Reads, and changes nothing. What is remembered of earlier observations is added by [`remember`](super::remember).
pub async fn observe(
    cluster: &EtcdCluster,
    names: ClusterNames,
    objects: MemberObjects,
    context: &Context,
    occasion: Occasion,
) -> Observation {
    let endpoints: Endpoints =
        objects.pods.iter().filter_map(|(ordinal, pod)| Some((*ordinal, endpoint(pod)?))).collect();
    let probed = probe_members(&endpoints, &names).await;
    let status = cluster.status.clone().unwrap_or_default();
    let cluster_version = observe_cluster_version(cluster, &endpoints, &probed).await;
    let memory = context.memories.of(&names.namespace, &names.cluster);
    let observed = Observed {
        uid: cluster.uid().unwrap_or_default(),
        now: now(),
        wanted: observe_wishes(cluster, &objects),
        recorded: observe_records(&status),
        objects: Objects {
            backup_first: upgrade_backup::observe(&context.client, cluster).await,
            shared: shared_objects::observe(cluster, &context.caches, &memory),
            ..observe_objects(cluster, &objects, context).await
        },
        etcd: Etcd {
            cluster_version: cluster_version.or_else(|| parse(status.cluster_version.as_deref())),
            downgrade: probed.statuses.values().find_map(|status| parse(status.downgrade_target.as_deref())),
            answers: probed.answers,
            membership: probed.membership,
            local_membership: probed.local_membership,
            alarms: probed.alarms,
            compacted: probed.compacted,
        },
        remembered: Remembered::default(),
        names,
    };
    let observed = with_version_of_the_data(observed);
    let voters = voters_to_compare(&observed, &endpoints, &probed.statuses);
    let ids: Vec<MemberId> = voters.iter().map(ComparedVoter::member_id).collect();
    let is_due = memory.corruption_history().is_due(occasion, &observed, &ids);
    let hashes = if is_due { Some(compare(&voters).await) } else { None };
    Observation { observed, endpoints, objects, hashes }
}

fn observe_wishes(cluster: &EtcdCluster, objects: &MemberObjects) -> Wanted {
    let spec = &cluster.spec;
    Wanted {
        replicas: u32::try_from(spec.replicas).unwrap_or_default().min(MOST_MEMBERS),
        durable: !spec.storage.is_ephemeral(),
        restores: spec.bootstrap.as_ref().is_some_and(|it| it.restore.is_some()),
        deleting: cluster.metadata.deletion_timestamp.is_some(),
        paused: paused_by(cluster, objects),
        replace_after: spec.replace_after().map(signed),
        defragments: spec.defragments(),
        migrates: spec.storage.migrate,
        version: Version::parse(&spec.version).ok(),
        flags: spec.etcd.iter().flat_map(|options| options.extra_args.keys().cloned()).collect(),
    }
}

fn observe_records(status: &EtcdClusterStatus) -> Recorded {
    let bootstrap = status.bootstrap().map(|bootstrap| Bootstrap {
        token: bootstrap.token.clone(),
        size: u32::try_from(bootstrap.size).unwrap_or_default().min(MOST_MEMBERS),
    });
    Recorded {
        bootstrap,
        // An ID that can't be parsed matches no cluster: nothing is bootstrapped, and no member that answers is
        // mistaken for one of this cluster.
        cluster_id: status.cluster_id.as_ref().map(|_| status.cluster_id().unwrap_or_default()),
        version: parse(status.target_version.as_deref()),
        voters: status.members.iter().filter(|member| member.role != Some(MemberRole::Learner)).count(),
        oldest_log: parse(status.oldest_log_version.as_deref()),
        unhealthy_since: unhealthy_since(status),
    }
}

async fn observe_objects(cluster: &EtcdCluster, objects: &MemberObjects, context: &Context) -> Objects {
    let uid = cluster.uid();
    let cannot_grow = obstacles_to_growth(&context.client, cluster, objects).await;
    let claims = objects.claims.iter().map(|(ordinal, claim)| {
        let cannot_grow = cannot_grow.get(ordinal).cloned();
        (*ordinal, Claim { cannot_grow, ..observe_claim(*ordinal, claim, cluster, objects) })
    });
    Objects {
        peers: objects.peers.iter().map(|(ordinal, peer)| (*ordinal, observe_peer(peer, &uid))).collect(),
        pods: objects.pods.iter().map(|(ordinal, pod)| (*ordinal, observe_pod(pod, objects))).collect(),
        claims: claims.collect(),
        outdated: spec_diff::find(cluster, objects, &context.settings.etcd_repository),
        // The quota that the members were created with: the one in the spec may not be rolled out yet.
        quota: objects.peers.values().map(|peer| peer.spec.quota()).min().unwrap_or_else(|| cluster.spec.quota()),
        ..Objects::default()
    }
}

/// The version that the members agreed on. etcd is queried only if it may have changed.
async fn observe_cluster_version(cluster: &EtcdCluster, endpoints: &Endpoints, probed: &Probe) -> Option<Version> {
    let status = cluster.status.as_ref();
    let is_known = |version: &Version| {
        let mut running = probed.answers.values().flatten().map(|answer| answer.version.as_ref());
        status.and_then(|status| status.target_version.as_deref()) == Some(&cluster.spec.version)
            && running.all(|running| running.is_some_and(|running| running.minor == version.minor))
            && probed.statuses.values().all(|status| status.downgrade_target.is_none())
    };
    match parse(status.and_then(|status| status.cluster_version.as_deref())).filter(is_known) {
        Some(known) => Some(known),
        None => parse(cluster_version(endpoints, &probed.answers).await.as_deref()),
    }
}

/// The annotations on claims are all that is left of a cluster that was deleted.
fn with_version_of_the_data(mut observed: Observed) -> Observed {
    if observed.etcd.cluster_version.is_none() {
        let of_data = observed.noted_version().map(|version| Version::new(version.major, version.minor, 0));
        observed.etcd.cluster_version = of_data;
    }
    observed
}

/// All voters if they are healthy, otherwise none: recovery comes before comparison.
fn voters_to_compare<'a>(
    observed: &Observed,
    endpoints: &'a Endpoints,
    statuses: &'a BTreeMap<Ordinal, Status>,
) -> Vec<ComparedVoter<'a>> {
    let Some(membership) = &observed.etcd.membership else { return Vec::new() };
    let voter = |member: &Member| {
        let ordinal = member.ordinal.filter(|_| observed.is_healthy(member))?;
        Some(ComparedVoter { url: endpoints.get(&ordinal)?, status: statuses.get(&ordinal)? })
    };
    membership.voters().map(voter).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// Where the cluster is marked as paused, if it is.
fn paused_by(cluster: &EtcdCluster, objects: &MemberObjects) -> Option<String> {
    if cluster.spec.paused {
        return Some("spec.paused is true".to_owned());
    }
    fn noted<K: Resource<DynamicType = ()>>(object: &K) -> Option<String> {
        let pauses = object.annotations().get(PAUSED).is_some_and(|value| value == "true");
        pauses.then(|| format!("the {} {} has the annotation {PAUSED}", K::kind(&()), object.name_any()))
    }
    let peers = objects.peers.values().find_map(|peer| noted(peer.as_ref()));
    let pods = || objects.pods.values().find_map(|pod| noted(pod.as_ref()));
    let claims = || objects.claims.values().find_map(|claim| noted(claim.as_ref()));
    noted(cluster).or(peers).or_else(pods).or_else(claims)
}

/// What is no version counts as none.
fn parse(version: Option<&str>) -> Option<Version> {
    Version::parse(version?).ok()
}

fn unhealthy_since(status: &EtcdClusterStatus) -> BTreeMap<MemberId, Timestamp> {
    let unhealthy = status.members.iter().filter_map(|member| Some((member.id()?, member.unhealthy_since.as_ref()?)));
    unhealthy.map(|(id, since)| (id, since.0)).collect()
}

/// In whole seconds, as Kubernetes writes times.
fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default()
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// The address of a pod's etcd, once the pod has an IP and its etcd has been started.
fn endpoint(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let runs = status.container_statuses.iter().flatten().any(is_running);
    let address = status.pod_ip.as_ref().filter(|_| runs)?;
    Some(if address.contains(':') { format!("http://[{address}]:2379") } else { format!("http://{address}:2379") })
}

fn has_begun(container: &ContainerStatus) -> bool {
    let state = container.state.as_ref();
    container.restart_count > 0 || state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

fn is_running(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

/// Whether an object is being deleted, or will be because its owner is gone. The latter is the state of objects of an
/// earlier EtcdCluster of the same name until Kubernetes has garbage-collected them.
fn is_going<K: Resource>(object: &K, is_owner: impl Fn(&str) -> bool) -> bool {
    let owners = object.owner_references();
    object.meta().deletion_timestamp.is_some() || owners.iter().any(|owner| !is_owner(&owner.uid))
}

fn observe_peer(peer: &EtcdPeer, cluster: &Option<String>) -> ObservedPeer {
    let status = peer.status.clone().unwrap_or_default();
    let identity = status.member_id().zip(status.cluster_id());
    let replacement = status.replacement.and_then(|last| {
        Some(Replacement {
            member_id: MemberId::parse(&last.member_id)?,
            at: last.time.0,
            count: u32::try_from(last.count).unwrap_or_default(),
            why: last.reason,
        })
    });
    let defragmented = status.last_defragmentation;
    ObservedPeer {
        identity: identity.map(|(member_id, cluster_id)| Identity { member_id, cluster_id }),
        started: status.started,
        deleting: is_going(peer, |uid| Some(uid) == cluster.as_deref()),
        version: Version::parse(&peer.spec.version).ok(),
        proven: status.server_version.is_some(),
        replacement,
        defragmented: defragmented.map(|last| Defragmentation { at: last.time.0, compacted: last.compacted_revision }),
    }
}

fn observe_pod(pod: &Pod, objects: &MemberObjects) -> ObservedPod {
    let is_peer = |uid: &str| objects.peers.values().any(|peer| peer.metadata.uid.as_deref() == Some(uid));
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let status = pod.status.as_ref();
    let containers =
        status.iter().flat_map(|it| it.init_container_statuses.iter().chain(&it.container_statuses)).flatten();
    let mut containers = containers.into_iter();
    let conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
    ObservedPod {
        deleting: is_going(pod, is_peer),
        finished: phase == "Failed" || phase == "Succeeded",
        expected: read_expected_data(pod.annotations()),
        serves_clients: pod.labels().get(ROLE).is_some_and(|role| role == VOTER),
        leaving_since: pod.annotations().get(LEAVING_SINCE).and_then(|time| time.parse().ok()),
        created: pod.creation_timestamp().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        deleting_since: pod.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        began: containers.any(has_begun),
        restoring: is_restoring(pod),
        ready: conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
        node: node_of_pod(pod).map(|name| node::see(objects.nodes.get(name).map(Arc::as_ref))),
        problem: pod_problem::problem_of(pod),
    }
}

/// Whether one of the init containers that restore a backup in the first pod of a cluster is running.
fn is_restoring(pod: &Pod) -> bool {
    let init = pod.status.iter().flat_map(|status| status.init_container_statuses.iter().flatten());
    let is_at_work = |status: &ContainerStatus| status.state.as_ref().is_some_and(|state| state.running.is_some());
    init.filter(|status| [FETCH, RESTORE].contains(&status.name.as_str())).any(is_at_work)
}

fn observe_claim(
    ordinal: Ordinal,
    claim: &PersistentVolumeClaim,
    cluster: &EtcdCluster,
    objects: &MemberObjects,
) -> Claim {
    let node = objects.bound_to.get(&ordinal);
    // Owners other than EtcdClusters are not the operator's concern.
    let is_going_with =
        |owner: &OwnerReference| owner.kind == "EtcdCluster" && Some(&owner.uid) != cluster.metadata.uid.as_ref();
    let capacity = claim.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("storage"));
    let template = cluster.spec.storage.volume_claim_template.as_ref();
    Claim {
        deleting: claim.metadata.deletion_timestamp.is_some() || claim.owner_references().iter().any(is_going_with),
        bootstrap: read_bootstrap(claim.annotations()),
        identity: read_identity(claim.annotations()),
        version: parse(claim.annotations().get(DATA_VERSION).map(String::as_str)),
        strayed: has_strayed(claim, cluster),
        size: capacity.map(|size| size.0.clone()),
        too_small: should_grow(cluster, claim),
        cannot_grow: None,
        misfit: claim
            .spec
            .as_ref()
            .zip(template)
            .and_then(|(spec, template)| misfit_of(spec, template, cluster.spec.storage.migrate)),
        node: node.map(|name| node::see(objects.nodes.get(name).map(Arc::as_ref))),
    }
}
