//! The execution of membership changes, each sent to the right member.

use etcd_operator_api::EventReason;
use etcd_operator_core::cluster::observed::MemberId;
use etcd_operator_core::ordinal::Ordinal;
use etcd_operator_etcd::{Cause, MemberClient};

use super::actor::Actor;
use super::errors::{Error, etcd_error};
use super::probe::PATIENCE;

impl Actor<'_> {
    pub(super) async fn add_learner(&self, ordinal: Ordinal) -> Result<(), Error> {
        let name = self.name(ordinal);
        let url = self.observation.observed.names.peer_url(ordinal);
        let doing = format!("adding {name} as a learner");
        match self.client_of_a_voter()?.add_learner(&url).await {
            Ok(id) => {
                self.tell(EventReason::MemberAdded, &name, format!("Added {name} as a learner ({})", MemberId(id)))
                    .await
            }
            // An earlier attempt succeeded, and its response was lost.
            Err(error) if matches!(error.cause, Cause::ExistsAlready(_)) => Ok(()),
            Err(error) => Err(etcd_error(doing, error)),
        }
    }

    pub(super) async fn promote(&self, ordinal: Ordinal, member_id: MemberId) -> Result<(), Error> {
        let name = self.name(ordinal);
        match self.client_of_the_leader()?.promote(member_id.0).await {
            Ok(()) => self.tell(EventReason::MemberPromoted, &name, format!("Promoted {name} to voter")).await,
            // Expected for a while; the next reconcile retries.
            Err(error) if matches!(error.cause, Cause::NotInSync | Cause::NotALearner) => Ok(()),
            Err(error) => Err(etcd_error(format!("promoting {name}"), error)),
        }
    }

    pub(super) async fn move_leader(&self, from: Ordinal, to: Ordinal, to_id: MemberId) -> Result<(), Error> {
        let (from_name, to_name) = (self.name(from), self.name(to));
        let doing = format!("moving leadership from {from_name} to {to_name}");
        let moved = self.client_of(from)?.move_leader(to_id.0).await;
        moved.map_err(|error| etcd_error(doing, error))?;
        self.tell(EventReason::LeaderMoved, &from_name, format!("Moved leadership from {from_name} to {to_name}")).await
    }

    pub(super) async fn remove_member(&self, ordinal: Ordinal, member_id: MemberId, why: &str) -> Result<(), Error> {
        let name = self.name(ordinal);
        // Not through the member that is removed: it may stop before it has answered.
        match self.client_of_another_voter(ordinal)?.remove(member_id.0).await {
            Ok(()) => {}
            Err(error) if matches!(error.cause, Cause::MemberNotFound) => return Ok(()),
            Err(error) => return Err(etcd_error(format!("removing {name}"), error)),
        }
        let note = format!("Removed member {name} ({}): {why}", member_id);
        self.tell(EventReason::MemberRemoved, &name, note).await
    }

    /// The members that answer linearizable reads, and their addresses.
    fn voters(&self) -> impl Iterator<Item = (Ordinal, &str)> {
        let observation = self.observation;
        let answers = observation.observed.etcd.answers.iter();
        let reading = answers.filter(|(_, answer)| matches!(answer, Ok(answer) if answer.reads));
        reading.filter_map(|(ordinal, _)| Some((*ordinal, observation.endpoints.get(ordinal)?.as_str())))
    }

    pub(super) fn client_of_a_voter(&self) -> Result<MemberClient, Error> {
        dial(self.voters().next().map(|(_, url)| url))
    }

    /// Only the leader knows the progress of a learner; through another member, its error may come back garbled.
    fn client_of_the_leader(&self) -> Result<MemberClient, Error> {
        let observed = &self.observation.observed;
        let membership = observed.etcd.membership.as_ref();
        let leader = observed.leader().and_then(|id| membership?.member(id)?.ordinal);
        self.client_of(leader.ok_or_else(nobody_to_ask)?)
    }

    fn client_of_another_voter(&self, than: Ordinal) -> Result<MemberClient, Error> {
        dial(self.voters().find(|(ordinal, _)| *ordinal != than).map(|(_, url)| url))
    }

    fn client_of(&self, ordinal: Ordinal) -> Result<MemberClient, Error> {
        dial(self.observation.endpoints.get(&ordinal).map(String::as_str))
    }
}

fn dial(url: Option<&str>) -> Result<MemberClient, Error> {
    let client = MemberClient::new(url.ok_or_else(nobody_to_ask)?, PATIENCE * 3);
    client.map_err(|error| etcd_error("reaching a member".to_owned(), error))
}

fn nobody_to_ask() -> Error {
    Error::OutOfDate("no member answers any more".into())
}
