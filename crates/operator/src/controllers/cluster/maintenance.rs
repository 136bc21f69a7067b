//! The execution of maintenance steps, each sent to the right member.

use std::time::Duration;

use etcd_operator_api::EventReason;
use etcd_operator_core::cluster::observed::{Alarm, AlarmKind, Defragmentation};
use etcd_operator_core::ordinal::Ordinal;
use etcd_operator_etcd::{self as etcd, Cause, MemberClient};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::actor::Actor;
use super::errors::{Error, etcd_error};
use super::patches::{LastDefragmentation, PeerRecord};

/// How long a defragmentation is waited for. etcd continues one that takes longer.
const DEFRAGMENTATION: Duration = Duration::from_secs(15);

impl Actor<'_> {
    pub(super) async fn record_defragmentation(&self, ordinal: Ordinal, it: Defragmentation) -> Result<(), Error> {
        let last_defragmentation = LastDefragmentation { time: Time(it.at), compacted_revision: it.compacted };
        self.record_in_peer(ordinal, PeerRecord::Defragmentation { last_defragmentation }).await
    }

    pub(super) async fn defragment(&self, ordinal: Ordinal) -> Result<(), Error> {
        let name = self.name(ordinal);
        let doing = format!("defragmenting the database of {name}");
        let url = self.observation.endpoints.get(&ordinal);
        let url = url.ok_or_else(|| Error::OutOfDate(format!("{name} has no address any more")))?;
        let client = MemberClient::new(url, DEFRAGMENTATION);
        let done = match client {
            Ok(mut client) => client.defragment().await,
            Err(error) => Err(error),
        };
        match done {
            Ok(()) => self.tell(EventReason::Defragmented, &name, format!("Defragmented the database of {name}")).await,
            Err(error) if matches!(error.cause, Cause::TimedOut(_)) => {
                self.tell(EventReason::Defragmenting, &name, format!("The database of {name} is being defragmented"))
                    .await
            }
            Err(error) => Err(etcd_error(doing, error)),
        }
    }

    pub(super) async fn disarm(&self, alarm: Alarm) -> Result<(), Error> {
        let kind = match alarm.kind {
            AlarmKind::NoSpace => etcd::AlarmKind::NoSpace,
            AlarmKind::Corrupt => etcd::AlarmKind::Corrupt,
        };
        let disarmed = self.client_of_a_voter()?.disarm(etcd::Alarm { member_id: alarm.member_id.0, kind }).await;
        disarmed.map_err(|error| etcd_error(format!("disarming the alarm {kind}"), error))?;
        let note = format!("Disarmed the alarm {kind} of the member {}", alarm.member_id);
        self.tell(EventReason::AlarmDisarmed, &self.observation.observed.names.cluster, note).await
    }
}
