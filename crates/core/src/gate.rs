//! Whether a member may start on the data that is in its volume. The gate asks this before every start of a pod.

use crate::observed::{Data, Identity, Told};

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
    /// To start would be wrong. The member must be replaced, or its data found.
    Refuse(String),
}

pub fn verdict(told: Told, found: &Found) -> Verdict {
    match (told.data, found) {
        (Data::Fresh, Found::Nothing) => Verdict::Start,
        (Data::Fresh, Found::Unreadable(why)) => Verdict::Archive(format!("the data can't be read ({why})")),
        (Data::Fresh, Found::Member(found)) => match told.identity {
            Some(identity) if identity == *found => Verdict::Start,
            None => Verdict::Refuse("nobody has told who this member is".to_owned()),
            Some(_) => Verdict::Archive(format!("the data is that of {}", describe(found))),
        },
        (Data::Kept, Found::Nothing) => Verdict::Refuse("its data is gone".to_owned()),
        (Data::Kept, Found::Unreadable(why)) => Verdict::Refuse(format!("its data can't be read ({why})")),
        (Data::Kept, Found::Member(found)) => match told.identity {
            Some(identity) if identity == *found => Verdict::Start,
            Some(_) => Verdict::Refuse(format!("the data is that of {}", describe(found))),
            None => Verdict::Refuse("nobody has told who this member is".to_owned()),
        },
    }
}

fn describe(identity: &Identity) -> String {
    format!("member {:x} of the etcd cluster {:x}", identity.member_id, identity.cluster_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Identity = Identity { member_id: 0xa, cluster_id: 0xc };
    const OTHER: Identity = Identity { member_id: 0xb, cluster_id: 0xc };

    fn told(data: Data, identity: Option<Identity>) -> Told {
        Told { data, identity }
    }

    #[test]
    fn a_member_that_ran_before_starts_only_on_its_own_data() {
        let kept = told(Data::Kept, Some(OURS));
        assert_eq!(verdict(kept, &Found::Member(OURS)), Verdict::Start);
        for found in [Found::Nothing, Found::Member(OTHER), Found::Unreadable("x".into())] {
            assert!(matches!(verdict(kept, &found), Verdict::Refuse(_)), "{found:?}");
        }
        assert!(matches!(verdict(told(Data::Kept, None), &Found::Member(OURS)), Verdict::Refuse(_)));
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
        assert!(matches!(verdict(told(Data::Fresh, None), &Found::Member(OURS)), Verdict::Refuse(_)));
    }
}
