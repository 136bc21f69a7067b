//! Probes the members: their status, and whether they serve a linearizable read.

use std::time::{Duration, Instant};

use etcd_operator_etcd::{Error, MemberClient};
use etcd_operator_protocol::report::Failure;
use futures::future::join_all;
use tracing::info;

use crate::select_member::{Answer, MemberStatus, members_to_try};

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a quorum is waited for: a cluster that chooses a new leader has one in a moment.
const WITHOUT_QUORUM: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

/// A member that may be asked for its snapshot, over the connection over which it was probed.
pub struct ReachableMember {
    pub client: MemberClient,
    pub probed: MemberStatus,
    pub with_quorum: bool,
}

/// Those that may be asked for a snapshot, the best first.
pub async fn reachable(endpoints: &[String]) -> Result<Vec<ReachableMember>, Failure> {
    let begin = Instant::now();
    loop {
        let (clients, answers): (Vec<Option<MemberClient>>, Vec<Answer>) =
            join_all(endpoints.iter().map(|url| ask(url))).await.into_iter().unzip();
        let choice = members_to_try(&answers);
        let good = choice.as_ref().is_ok_and(|choice| choice.with_quorum);
        let hopeless = choice.as_ref().is_err_and(|failure| !failure.reason.may_pass());
        if !good && !hopeless && begin.elapsed() < WITHOUT_QUORUM {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            continue;
        }
        let choice = choice?;
        let answered = answers.iter().filter(|answer| answer.is_ok()).count();
        let (can_be_asked, with_quorum) = (choice.best_first.len(), choice.with_quorum);
        info!(members = endpoints.len(), answered, can_be_asked, with_quorum, "probed members");
        let mut all: Vec<Option<ReachableMember>> = clients
            .into_iter()
            .zip(answers)
            .map(|(client, answer)| Some(ReachableMember { client: client?, probed: answer.ok()?, with_quorum }))
            .collect();
        return Ok(choice.best_first.into_iter().filter_map(|index| all.get_mut(index)?.take()).collect());
    }
}

async fn ask(url: &str) -> (Option<MemberClient>, Answer) {
    match status(url).await {
        Ok((client, probed)) => (Some(client), Ok(probed)),
        Err(error) => (None, Err(error.to_string())),
    }
}

async fn status(url: &str) -> Result<(MemberClient, MemberStatus), Error> {
    let mut client = MemberClient::new(url, REQUEST_TIMEOUT)?;
    let status = client.status().await?;
    // Over a clone, so that the connection stays what it is if no answer comes.
    let linearizable_read_ok = client.with_deadline(REQUEST_TIMEOUT).check_linearizable_read().await.is_ok();
    Ok((client, MemberStatus { url: url.into(), status, linearizable_read_ok }))
}
