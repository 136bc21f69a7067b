//! Whether a member may start on the data in its volume: what its pod says that it expects, and what follows if the data
//! dir holds something else. The gate asks this before every start of etcd, the operator writes what is expected.

use crate::ids::{ClusterId, MemberId};

/// The identity of a member. A member that lost its data never returns under the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub member_id: MemberId,
    pub cluster_id: ClusterId,
}

/// The data that a pod expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedData {
    pub data: DataState,
    pub identity: Option<Identity>,
}

/// Whether a member's data must be there when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataState {
    /// It starts for the first time: there is no data, or an earlier member left some.
    New,
    /// It ran before: it must not start without its data.
    Existing,
}

/// Prefix of a refusal because the member's data is missing, unreadable or of another member.
pub const REFUSED: &str = "refused: ";
/// Prefix of a refusal because the pod does not specify its member or whether it has data. No data is known to be lost
/// then.
pub const MISCONFIGURED: &str = "misconfigured: ";

/// What the data dir contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataDirContents {
    Nothing,
    Member(Identity),
    /// There are files, but they don't identify a member.
    Unreadable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartDecision {
    /// The data is this member's, or there is none and none is expected.
    Start,
    /// The data is of an earlier member: it is moved aside, and the member starts without data.
    Archive(String),
    /// Starting would be wrong, for the reason in this message. It begins with [`REFUSED`] if the member must be
    /// replaced or its data recovered, and with [`MISCONFIGURED`] if the pod specifies too little.
    Refuse(String),
}

pub fn decide_start(expected: ExpectedData, found: &DataDirContents) -> StartDecision {
    match (expected.data, found) {
        (DataState::New, DataDirContents::Nothing) => StartDecision::Start,
        (DataState::New, DataDirContents::Unreadable(why)) => {
            StartDecision::Archive(format!("the data can't be read ({why})"))
        }
        (DataState::New, DataDirContents::Member(found)) => match expected.identity {
            Some(identity) if identity == *found => StartDecision::Start,
            None => misconfigured("the pod does not say which member it is"),
            Some(_) => StartDecision::Archive(format!("the data is that of {}", describe(found))),
        },
        (DataState::Existing, DataDirContents::Nothing) => refused("its data is gone"),
        (DataState::Existing, DataDirContents::Unreadable(why)) => refused(&format!("its data can't be read ({why})")),
        (DataState::Existing, DataDirContents::Member(found)) => match expected.identity {
            Some(identity) if identity == *found => StartDecision::Start,
            Some(_) => refused(&format!("the data is that of {}", describe(found))),
            None => misconfigured("the pod does not say which member it is"),
        },
    }
}

fn refused(why: &str) -> StartDecision {
    StartDecision::Refuse(format!("{REFUSED}{why}"))
}

fn misconfigured(what: &str) -> StartDecision {
    StartDecision::Refuse(format!("{MISCONFIGURED}{what}"))
}

fn describe(identity: &Identity) -> String {
    format!("member {} of the etcd cluster {}", identity.member_id, identity.cluster_id)
}

/// The data that a pod expects, parsed from the values that it carries; a missing one is empty. The error is the message of the
/// refusal.
pub fn read_expected_data(data: &str, member_id: &str, cluster_id: &str) -> Result<ExpectedData, String> {
    let data = read_data_state(data)
        .ok_or_else(|| format!("{MISCONFIGURED}{data:?} does not say whether there must be data"))?;
    let identity = read_id(member_id, MemberId::parse)?.zip(read_id(cluster_id, ClusterId::parse)?);
    Ok(ExpectedData { data, identity: identity.map(|(member_id, cluster_id)| Identity { member_id, cluster_id }) })
}

fn read_id<T>(text: &str, parse: fn(&str) -> Option<T>) -> Result<Option<T>, String> {
    match (text, parse(text)) {
        ("", _) => Ok(None),
        (_, None) => Err(format!("{MISCONFIGURED}{text:?} is not an ID")),
        (_, id) => Ok(id),
    }
}

/// Parses the data state that a pod carries.
pub fn read_data_state(text: &str) -> Option<DataState> {
    [DataState::New, DataState::Existing].into_iter().find(|data| stored_data_state(*data) == text)
}

/// The data state as pods carry it. Gates of earlier operators read it too, so it stays as it was first written.
pub fn stored_data_state(data: DataState) -> &'static str {
    match data {
        DataState::New => "Fresh",
        DataState::Existing => "Kept",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Identity = Identity { member_id: MemberId(0xa), cluster_id: ClusterId(0xc) };
    const OTHER: Identity = Identity { member_id: MemberId(0xb), cluster_id: ClusterId(0xc) };

    fn expected(data: DataState, identity: Option<Identity>) -> ExpectedData {
        ExpectedData { data, identity }
    }

    fn is_refused(decision: &StartDecision, prefix: &str) -> bool {
        matches!(decision, StartDecision::Refuse(message) if message.starts_with(prefix))
    }

    #[test]
    fn a_member_that_ran_before_starts_only_on_its_own_data() {
        let kept = expected(DataState::Existing, Some(OURS));
        assert_eq!(decide_start(kept, &DataDirContents::Member(OURS)), StartDecision::Start);
        for found in [DataDirContents::Nothing, DataDirContents::Member(OTHER), DataDirContents::Unreadable("x".into())]
        {
            assert!(is_refused(&decide_start(kept, &found), REFUSED), "{found:?}");
        }
        assert_eq!(
            decide_start(kept, &DataDirContents::Nothing),
            StartDecision::Refuse("refused: its data is gone".into())
        );
    }

    #[test]
    fn data_that_is_gone_is_gone_whoever_the_member_is() {
        assert!(is_refused(&decide_start(expected(DataState::Existing, None), &DataDirContents::Nothing), REFUSED));
    }

    #[test]
    fn a_new_member_starts_empty_and_keeps_what_is_its_own() {
        let joining = expected(DataState::New, Some(OURS));
        assert_eq!(decide_start(joining, &DataDirContents::Nothing), StartDecision::Start);
        assert_eq!(decide_start(joining, &DataDirContents::Member(OURS)), StartDecision::Start);
        assert!(matches!(decide_start(joining, &DataDirContents::Member(OTHER)), StartDecision::Archive(_)));
        assert!(matches!(decide_start(joining, &DataDirContents::Unreadable("x".into())), StartDecision::Archive(_)));
    }

    #[test]
    fn member_without_known_identity_does_not_start_on_data() {
        for data in [DataState::New, DataState::Existing] {
            assert!(
                is_refused(&decide_start(expected(data, None), &DataDirContents::Member(OURS)), MISCONFIGURED),
                "{data:?}"
            );
        }
    }

    #[test]
    fn expected_data_is_read_from_pod_annotations() {
        assert_eq!(read_expected_data("Kept", "a", "c"), Ok(expected(DataState::Existing, Some(OURS))));
        assert_eq!(read_expected_data("Fresh", "", ""), Ok(expected(DataState::New, None)));
        assert_eq!(read_expected_data("Fresh", "a", ""), Ok(expected(DataState::New, None)));
    }

    #[test]
    fn expected_data_that_is_malformed_is_reported_as_misconfigured() {
        for (data, member_id, cluster_id) in
            [("", "a", "c"), ("kept", "a", "c"), ("Kept", "0xa", "c"), ("Kept", "a", "C")]
        {
            let message = read_expected_data(data, member_id, cluster_id).unwrap_err();
            assert!(message.starts_with(MISCONFIGURED), "{message}");
        }
    }
}
