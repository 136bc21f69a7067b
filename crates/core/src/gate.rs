//! Whether a member may start on the data that is in its volume. The gate asks this before every start of etcd.

use etcd_operator_api::parse_id;

use crate::observed::{Data, Identity, Told};

/// How a refusal begins if the member's data is not there: it is gone, can't be read or is somebody else's.
pub const REFUSED: &str = "refused: ";
/// How a refusal begins if it was not said who the member is or whether it has data. Nothing is known to be lost then.
pub const NOT_TOLD: &str = "not told: ";

/// What is in the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    Member(Identity),
    /// There are files, but they don't tell whose they are.
    Unreadable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The data is this member's, or there is none and none is expected.
    Start,
    /// The data is of an earlier member: it is moved aside, and the member starts with none.
    Archive(String),
    /// To start would be wrong, for the reason that this message gives. It begins with [`REFUSED`] if the member must be
    /// replaced or its data found, and with [`NOT_TOLD`] if it is enough to tell.
    Refuse(String),
}

pub fn verdict(told: Told, found: &Found) -> Verdict {
    match (told.data, found) {
        (Data::Fresh, Found::Nothing) => Verdict::Start,
        (Data::Fresh, Found::Unreadable(why)) => Verdict::Archive(format!("the data can't be read ({why})")),
        (Data::Fresh, Found::Member(found)) => match told.identity {
            Some(identity) if identity == *found => Verdict::Start,
            None => not_told("nobody has told who this member is"),
            Some(_) => Verdict::Archive(format!("the data is that of {}", describe(found))),
        },
        (Data::Kept, Found::Nothing) => refused("its data is gone"),
        (Data::Kept, Found::Unreadable(why)) => refused(&format!("its data can't be read ({why})")),
        (Data::Kept, Found::Member(found)) => match told.identity {
            Some(identity) if identity == *found => Verdict::Start,
            Some(_) => refused(&format!("the data is that of {}", describe(found))),
            None => not_told("nobody has told who this member is"),
        },
    }
}

fn refused(why: &str) -> Verdict {
    Verdict::Refuse(format!("{REFUSED}{why}"))
}

fn not_told(what: &str) -> Verdict {
    Verdict::Refuse(format!("{NOT_TOLD}{what}"))
}

fn describe(identity: &Identity) -> String {
    format!("member {:x} of the etcd cluster {:x}", identity.member_id, identity.cluster_id)
}

/// What the texts say that a pod carries for its member; one that is not there is empty. The error is the message of the
/// refusal.
pub fn read_told(data: &str, member_id: &str, cluster_id: &str) -> Result<Told, String> {
    let data = read_data(data).ok_or_else(|| format!("{NOT_TOLD}{data:?} does not say whether there must be data"))?;
    let identity = read_id(member_id)?.zip(read_id(cluster_id)?);
    Ok(Told { data, identity: identity.map(|(member_id, cluster_id)| Identity { member_id, cluster_id }) })
}

fn read_id(text: &str) -> Result<Option<u64>, String> {
    match (text, parse_id(text)) {
        ("", _) => Ok(None),
        (_, None) => Err(format!("{NOT_TOLD}{text:?} is not an ID")),
        (_, id) => Ok(id),
    }
}

pub fn read_data(text: &str) -> Option<Data> {
    [Data::Fresh, Data::Kept].into_iter().find(|data| name_of_data(*data) == text)
}

/// How pods carry it.
pub fn name_of_data(data: Data) -> &'static str {
    match data {
        Data::Fresh => "Fresh",
        Data::Kept => "Kept",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Identity = Identity { member_id: 0xa, cluster_id: 0xc };
    const OTHER: Identity = Identity { member_id: 0xb, cluster_id: 0xc };

    fn told(data: Data, identity: Option<Identity>) -> Told {
        Told { data, identity }
    }

    fn is_refused(verdict: &Verdict, prefix: &str) -> bool {
        matches!(verdict, Verdict::Refuse(message) if message.starts_with(prefix))
    }

    #[test]
    fn a_member_that_ran_before_starts_only_on_its_own_data() {
        let kept = told(Data::Kept, Some(OURS));
        assert_eq!(verdict(kept, &Found::Member(OURS)), Verdict::Start);
        for found in [Found::Nothing, Found::Member(OTHER), Found::Unreadable("x".into())] {
            assert!(is_refused(&verdict(kept, &found), REFUSED), "{found:?}");
        }
        assert_eq!(verdict(kept, &Found::Nothing), Verdict::Refuse("refused: its data is gone".into()));
    }

    #[test]
    fn data_that_is_gone_is_gone_whoever_the_member_is() {
        assert!(is_refused(&verdict(told(Data::Kept, None), &Found::Nothing), REFUSED));
    }

    #[test]
    fn a_new_member_starts_empty_and_keeps_what_is_its_own() {
        let joining = told(Data::Fresh, Some(OURS));
        assert_eq!(verdict(joining, &Found::Nothing), Verdict::Start);
        assert_eq!(verdict(joining, &Found::Member(OURS)), Verdict::Start);
        assert!(matches!(verdict(joining, &Found::Member(OTHER)), Verdict::Archive(_)));
        assert!(matches!(verdict(joining, &Found::Unreadable("x".into())), Verdict::Archive(_)));
    }

    #[test]
    fn nobody_starts_on_data_without_knowing_who_they_are() {
        for data in [Data::Fresh, Data::Kept] {
            assert!(is_refused(&verdict(told(data, None), &Found::Member(OURS)), NOT_TOLD), "{data:?}");
        }
    }

    #[test]
    fn what_a_pod_carries_is_read() {
        assert_eq!(read_told("Kept", "a", "c"), Ok(told(Data::Kept, Some(OURS))));
        assert_eq!(read_told("Fresh", "", ""), Ok(told(Data::Fresh, None)));
        assert_eq!(read_told("Fresh", "a", ""), Ok(told(Data::Fresh, None)));
    }

    #[test]
    fn what_makes_no_sense_tells_nothing() {
        for (data, member_id, cluster_id) in
            [("", "a", "c"), ("kept", "a", "c"), ("Kept", "0xa", "c"), ("Kept", "a", "C")]
        {
            let message = read_told(data, member_id, cluster_id).unwrap_err();
            assert!(message.starts_with(NOT_TOLD), "{message}");
        }
    }
}
