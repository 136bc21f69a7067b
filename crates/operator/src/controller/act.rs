//! The third step of a reconcile: carry the plan out, one step after another, and tell about each.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use etcd_operator_api::{Birth as RecordedBirth, EtcdCluster, EtcdClusterStatus, EtcdPeer, format_id};
use etcd_operator_core::observed::{Birth, Identity, Told};
use etcd_operator_core::plan::{Start, Step};
use etcd_operator_etcd::{Cause, MemberClient};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ask::{PATIENCE, list_members};
use super::events::Events;
use super::observe::World;
use super::report;
use crate::objects::annotations::{ROLE, of_identity, of_told, read_birth, read_identity, role};
use crate::objects::pod::Settings;
use crate::objects::{claim, member_labels, peer, pod};
use crate::words::describe;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{doing}: {}", describe(.source))]
    Api { doing: String, source: Box<kube::Error> },
    #[error("{doing}: {source}")]
    Etcd { doing: String, source: Box<etcd_operator_etcd::Error> },
    /// The world is not as it was when the plan was made. Another look will make another plan.
    #[error("{0}, so the plan is out of date")]
    OutOfDate(String),
    /// etcd says that it is too early. It wants the members to have been connected for some seconds before a change.
    #[error("{0}")]
    TooEarly(String),
    #[error("{0}")]
    Impossible(String),
}

/// Everything that steps are carried out with.
pub struct Actor<'a> {
    pub client: &'a Client,
    pub cluster: &'a EtcdCluster,
    pub world: &'a World,
    pub settings: &'a Settings,
    pub events: &'a Events,
    /// EtcdPeers made by earlier steps of the same plan, which the cache doesn't know yet.
    made: BTreeMap<u32, Arc<EtcdPeer>>,
}

impl<'a> Actor<'a> {
    pub fn new(
        client: &'a Client,
        cluster: &'a EtcdCluster,
        world: &'a World,
        settings: &'a Settings,
        events: &'a Events,
    ) -> Self {
        Actor { client, cluster, world, settings, events, made: BTreeMap::new() }
    }

    pub async fn carry_out(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::RecordBirth(birth) => {
                let size = i32::try_from(birth.size).unwrap_or(i32::MAX);
                let birth = RecordedBirth { token: birth.token.clone(), size };
                self.record(|status| status.birth = Some(birth)).await
            }
            Step::RecordClusterId(id) => {
                let id = format_id(*id);
                self.record(|status| status.cluster_id = Some(id.clone())).await?;
                self.tell("ClusterCreated", &self.cluster.name_any(), format!("The members form the etcd cluster {id}"))
                    .await
            }
            Step::CreatePeer { ordinal, founding } => self.create_peer(*ordinal, *founding).await,
            Step::RecordMember { ordinal, identity, started } => {
                self.record_member(*ordinal, *identity, *started).await
            }
            Step::CreateClaim { ordinal, birth, identity } => {
                self.create_claim(*ordinal, birth.as_ref(), *identity).await
            }
            Step::MarkClaim { ordinal, identity } => {
                let notes = json!({"metadata": {"annotations": of_identity(Some(*identity))}});
                self.patch::<PersistentVolumeClaim>(&self.name(*ordinal), notes).await
            }
            Step::CreatePod { ordinal, start } => self.create_pod(*ordinal, start).await,
            Step::TellPod { ordinal, told, serves_clients } => self.tell_pod(*ordinal, *told, *serves_clients).await,
            Step::DeletePod { ordinal, why } => self.delete_pod(*ordinal, why).await,
            Step::DeleteClaim { ordinal } => self.delete_claim(*ordinal).await,
            Step::DeletePeer { ordinal } => {
                let name = self.name(*ordinal);
                let uid = self.world.peers.get(ordinal).and_then(|peer| peer.uid());
                self.delete::<EtcdPeer>(&name, uid).await?;
                self.tell("PeerRemoved", &name, format!("Removed the EtcdPeer {name}")).await
            }
            Step::AddLearner { ordinal } => self.add_learner(*ordinal).await,
            Step::Promote { ordinal, member_id } => self.promote(*ordinal, *member_id).await,
            Step::MoveLeader { from, to, to_id } => self.move_leader(*from, *to, *to_id).await,
            Step::RemoveMember { ordinal, member_id } => self.remove_member(*ordinal, *member_id).await,
        }
    }

    fn name(&self, ordinal: u32) -> String {
        self.world.observed.place.member_name(ordinal)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.world.observed.place.namespace)
    }

    async fn tell(&self, reason: &str, about: &str, note: String) -> Result<(), Error> {
        tracing::info!(cluster = %self.cluster.name_any(), reason, note);
        self.events.done(self.cluster, reason, about, note).await;
        Ok(())
    }

    /// Writes something into the cluster's status that must be there before anything else happens. It fails if the
    /// cluster has changed since it was read.
    async fn record(&self, change: impl FnOnce(&mut EtcdClusterStatus)) -> Result<(), Error> {
        let mut status = self.cluster.status.clone().unwrap_or_default();
        change(&mut status);
        let written = report::write_status(self.client, self.cluster, &status).await;
        match written.map_err(|error| api_error("recording in the status", error))? {
            report::Written::Yes => Ok(()),
            report::Written::Outdated => Err(Error::OutOfDate("the EtcdCluster has changed".into())),
        }
    }

    async fn create_peer(&mut self, ordinal: u32, founding: bool) -> Result<(), Error> {
        let name = self.name(ordinal);
        let founders = self.world.observed.birth.as_ref().filter(|_| founding).map(|birth| birth.size);
        let peer = peer::peer(self.cluster, &self.world.observed.place, ordinal, founders);
        let created = match self.create::<EtcdPeer>(peer).await? {
            Some(created) => {
                self.tell("PeerCreated", &name, format!("Created the EtcdPeer {name}")).await?;
                created
            }
            None => {
                // It is there, but the cache doesn't show it: it lost its labels, or the cache is behind.
                let labels = member_labels(&self.cluster.name_any(), &name);
                self.patch::<EtcdPeer>(&name, json!({"metadata": {"labels": labels}})).await?;
                let doing = || format!("reading the EtcdPeer {name}");
                self.api().get(&name).await.map_err(|error| api_error(doing(), error))?
            }
        };
        self.made.insert(ordinal, Arc::new(created));
        Ok(())
    }

    async fn record_member(&self, ordinal: u32, identity: Identity, started: bool) -> Result<(), Error> {
        let name = self.name(ordinal);
        let status = json!({"status": {
            "memberID": format_id(identity.member_id),
            "clusterID": format_id(identity.cluster_id),
            "started": started,
        }});
        let patched = self.api::<EtcdPeer>().patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await;
        patched.map(drop).map_err(|error| api_error(format!("recording who {name} is"), error))
    }

    async fn create_claim(&self, ordinal: u32, birth: Option<&Birth>, identity: Option<Identity>) -> Result<(), Error> {
        let name = self.name(ordinal);
        let Some(template) = &self.cluster.spec.storage.volume_claim_template else { return Ok(()) };
        let claim = claim::claim(self.cluster, template, &name, birth, identity);
        if self.create::<PersistentVolumeClaim>(claim).await?.is_some() {
            return self.tell("PVCCreated", &name, format!("Created the volume claim {name}")).await;
        }
        // There is a claim of this name that the cache doesn't show as ours: repair its labels, if it is.
        let doing = || format!("reading the volume claim {name}");
        let found: PersistentVolumeClaim = self.api().get(&name).await.map_err(|error| api_error(doing(), error))?;
        let notes = found.annotations();
        let ours = (birth.is_some() && read_birth(notes).as_ref() == birth)
            || (identity.is_some() && read_identity(notes) == identity);
        if !ours {
            return Err(Error::Impossible(format!(
                "there is a volume claim {name} already that was not made for this cluster; rename or delete it"
            )));
        }
        let labels = member_labels(&self.cluster.name_any(), &name);
        self.patch::<PersistentVolumeClaim>(&name, json!({"metadata": {"labels": labels}})).await
    }

    async fn create_pod(&self, ordinal: u32, start: &Start) -> Result<(), Error> {
        let name = self.name(ordinal);
        if start.founding.is_some() {
            self.confirm_unborn().await?;
        }
        let peer = self.made.get(&ordinal).or_else(|| self.world.peers.get(&ordinal));
        let peer = peer.ok_or_else(|| Error::OutOfDate(format!("the EtcdPeer {name} is gone")))?;
        let pod = pod::pod(peer, &self.world.observed.place, ordinal, start, self.settings);
        if self.create::<Pod>(pod).await?.is_some() {
            return self.tell("PodCreated", &name, format!("Created the pod {name}")).await;
        }
        // There is a pod of this name that the cache doesn't show as ours: repair its labels, if it is our peer's.
        let doing = || format!("reading the pod {name}");
        let found: Pod = self.api().get(&name).await.map_err(|error| api_error(doing(), error))?;
        if found.metadata.deletion_timestamp.is_some() {
            return Err(Error::OutOfDate(format!("the old pod {name} is still stopping")));
        }
        let owned = found.owner_references().iter().any(|owner| Some(&owner.uid) == peer.uid().as_ref());
        if !owned {
            return Err(Error::Impossible(format!("there is a pod {name} already, and it belongs to somebody else")));
        }
        let labels = member_labels(&self.cluster.name_any(), &name);
        self.patch::<Pod>(&name, json!({"metadata": {"labels": labels}})).await
    }

    async fn tell_pod(&self, ordinal: u32, told: Told, serves_clients: bool) -> Result<(), Error> {
        let metadata = json!({"annotations": of_told(told), "labels": {ROLE: role(serves_clients)}});
        self.patch::<Pod>(&self.name(ordinal), json!({"metadata": metadata})).await
    }

    async fn delete_pod(&self, ordinal: u32, why: &str) -> Result<(), Error> {
        let name = self.name(ordinal);
        self.delete::<Pod>(&name, self.world.pods.get(&ordinal).and_then(|pod| pod.uid())).await?;
        self.tell("PodDeleted", &name, format!("Deleted the pod {name}: {why}")).await
    }

    /// The data goes with the claim, so both sides are asked once more: the member must have left, and the user must
    /// still want it so.
    async fn delete_claim(&self, ordinal: u32) -> Result<(), Error> {
        let name = self.name(ordinal);
        self.confirm_wishes().await?;
        let members = self.live_members().await?;
        if members.iter().any(|member| member.ordinal == Some(ordinal)) {
            return Err(Error::OutOfDate(format!("{name} is a member")));
        }
        self.delete::<PersistentVolumeClaim>(&name, self.world.claims.get(&ordinal).and_then(|claim| claim.uid()))
            .await?;
        self.tell("PVCDeleted", &name, format!("Deleted the volume claim {name}: its member was removed")).await
    }

    async fn add_learner(&self, ordinal: u32) -> Result<(), Error> {
        let name = self.name(ordinal);
        self.confirm_wishes().await?;
        let url = self.world.observed.place.peer_url(ordinal);
        let doing = format!("adding {name} as a learner");
        match self.client_of_a_voter()?.add_learner(&url).await {
            Ok(id) => self.tell("MemberAdded", &name, format!("Added {name} as a learner, {}", format_id(id))).await,
            // An earlier try did it, and its answer got lost.
            Err(error) if matches!(error.cause, Cause::ExistsAlready(_)) => Ok(()),
            Err(error) => Err(etcd_error(doing, error)),
        }
    }

    async fn promote(&self, ordinal: u32, member_id: u64) -> Result<(), Error> {
        let name = self.name(ordinal);
        match self.client_of_the_leader()?.promote(member_id).await {
            Ok(()) => self.tell("MemberPromoted", &name, format!("{name} has caught up and votes now")).await,
            // Normal for a while; the next look tries again.
            Err(error) if matches!(error.cause, Cause::NotInSync | Cause::NotALearner) => Ok(()),
            Err(error) => Err(etcd_error(format!("promoting {name}"), error)),
        }
    }

    async fn move_leader(&self, from: u32, to: u32, to_id: u64) -> Result<(), Error> {
        let (from_name, to_name) = (self.name(from), self.name(to));
        let doing = format!("moving leadership from {from_name} to {to_name}");
        let moved = self.client_of(from)?.move_leader(to_id).await;
        moved.map_err(|error| etcd_error(doing, error))?;
        self.tell("LeaderMoved", &from_name, format!("Moved leadership from {from_name} to {to_name}")).await
    }

    async fn remove_member(&self, ordinal: u32, member_id: u64) -> Result<(), Error> {
        let name = self.name(ordinal);
        self.confirm_wishes().await?;
        // Not through the one that leaves: it may stop before it has answered.
        match self.client_of_another_voter(ordinal)?.remove(member_id).await {
            Ok(()) => {}
            Err(error) if matches!(error.cause, Cause::MemberNotFound) => return Ok(()),
            Err(error) => return Err(etcd_error(format!("removing {name}"), error)),
        }
        self.tell("MemberRemoved", &name, format!("Removed {name}, {}, from the etcd cluster", format_id(member_id)))
            .await
    }

    /// Reads the EtcdCluster from the API server itself: a cluster that was born meanwhile is not founded again.
    async fn confirm_unborn(&self) -> Result<(), Error> {
        let doing = "reading whether the cluster is born";
        let now: Option<EtcdCluster> =
            self.api().get_opt(&self.cluster.name_any()).await.map_err(|error| api_error(doing, error))?;
        let unborn = now.is_some_and(|now| {
            let is_same = now.uid() == self.cluster.uid() && now.metadata.deletion_timestamp.is_none();
            is_same && now.status.is_none_or(|status| status.cluster_id.is_none())
        });
        if unborn { Ok(()) } else { Err(Error::OutOfDate("the cluster is born or gone".into())) }
    }

    /// Reads the EtcdCluster from the API server itself: what it asks for must be what the plan was made for.
    async fn confirm_wishes(&self) -> Result<(), Error> {
        let doing = "reading the EtcdCluster once more";
        let now: Option<EtcdCluster> =
            self.api().get_opt(&self.cluster.name_any()).await.map_err(|error| api_error(doing, error))?;
        let same = now.is_some_and(|now| {
            now.uid() == self.cluster.uid()
                && now.metadata.generation == self.cluster.metadata.generation
                && now.metadata.deletion_timestamp.is_none()
        });
        if same { Ok(()) } else { Err(Error::OutOfDate("the EtcdCluster has changed".into())) }
    }

    async fn live_members(&self) -> Result<Vec<etcd_operator_core::observed::Member>, Error> {
        let url = self.voters().next().map(|(_, url)| url).ok_or_else(nobody_to_ask)?;
        let listed = list_members(url, &self.world.observed.place).await;
        let listed = listed.map_err(|error| etcd_error("listing the members once more".to_owned(), error))?;
        if Some(listed.cluster_id) != self.world.observed.cluster_id {
            return Err(Error::OutOfDate("another etcd cluster answers".into()));
        }
        Ok(listed.members)
    }

    /// The members that answer reads which need a quorum, and where.
    fn voters(&self) -> impl Iterator<Item = (u32, &str)> {
        let world = self.world;
        let answers = world.observed.answers.iter();
        let reading = answers.filter(|(_, answer)| matches!(answer, Ok(answer) if answer.reads));
        reading.filter_map(|(ordinal, _)| Some((*ordinal, world.endpoints.get(ordinal)?.as_str())))
    }

    fn client_of_a_voter(&self) -> Result<MemberClient, Error> {
        dial(self.voters().next().map(|(_, url)| url))
    }

    /// Only the leader knows how far a learner is; asked through another, its answer may come back garbled.
    fn client_of_the_leader(&self) -> Result<MemberClient, Error> {
        let observed = &self.world.observed;
        let members = observed.membership.iter().flat_map(|membership| &membership.members);
        let leader = observed.leader().and_then(|id| members.into_iter().find(|member| member.id == id)?.ordinal);
        self.client_of(leader.ok_or_else(nobody_to_ask)?)
    }

    fn client_of_another_voter(&self, than: u32) -> Result<MemberClient, Error> {
        dial(self.voters().find(|(ordinal, _)| *ordinal != than).map(|(_, url)| url))
    }

    fn client_of(&self, ordinal: u32) -> Result<MemberClient, Error> {
        dial(self.world.endpoints.get(&ordinal).map(String::as_str))
    }

    /// Creates an object. None if there is one of that name already.
    async fn create<K>(&self, object: Value) -> Result<Option<K>, Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let doing = format!("creating the {} {}", K::kind(&()), object["metadata"]["name"]);
        let object: K =
            serde_json::from_value(object).map_err(|error| Error::Impossible(format!("{doing}: {error}")))?;
        match self.api::<K>().create(&PostParams::default(), &object).await {
            Ok(created) => Ok(Some(created)),
            Err(kube::Error::Api(answer)) if answer.code == 409 => Ok(None),
            Err(error) => Err(api_error(doing, error)),
        }
    }

    async fn patch<K>(&self, name: &str, patch: Value) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let doing = || format!("changing the {} {name}", K::kind(&()));
        let patched = self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| api_error(doing(), error))
    }

    /// Deletes an object, but only the very one that was seen.
    async fn delete<K>(&self, name: &str, uid: Option<String>) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let only = Preconditions { uid, resource_version: None };
        let parameters = DeleteParams { preconditions: Some(only), ..DeleteParams::background() };
        match self.api::<K>().delete(name, &parameters).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(answer)) if answer.code == 404 => Ok(()),
            // Another object has this name by now.
            Err(kube::Error::Api(answer)) if answer.code == 409 => Err(Error::OutOfDate(format!("{name} has changed"))),
            Err(error) => Err(api_error(format!("deleting the {} {name}", K::kind(&())), error)),
        }
    }
}

fn dial(url: Option<&str>) -> Result<MemberClient, Error> {
    let client = MemberClient::new(url.ok_or_else(nobody_to_ask)?, PATIENCE * 3);
    client.map_err(|error| etcd_error("reaching a member".to_owned(), error))
}

fn nobody_to_ask() -> Error {
    Error::OutOfDate("no member answers any more".into())
}

pub fn api_error(doing: impl Into<String>, error: kube::Error) -> Error {
    Error::Api { doing: doing.into(), source: Box::new(error) }
}

fn etcd_error(doing: String, error: etcd_operator_etcd::Error) -> Error {
    match error.cause {
        Cause::Unhealthy(why) => Error::TooEarly(format!("{doing}: {why}")),
        _ => Error::Etcd { doing, source: Box::new(error) },
    }
}
