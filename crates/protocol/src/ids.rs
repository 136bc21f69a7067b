//! The IDs of members and clusters, written as etcd and `etcdctl` print them: in hexadecimal, lower case, not padded.
//! Each has a type of its own, so that one is never taken for the other.

use std::fmt;

macro_rules! id {
    ($(#[doc = $about:literal])+ $name:ident) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// The ID that a text stands for. `None` if it is not an ID as etcd prints it.
            pub fn parse(text: &str) -> Option<Self> {
                let id = $name(u64::from_str_radix(text, 16).ok()?);
                (id.to_string() == text).then_some(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{:x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({:x})"), self.0)
            }
        }
    };
}

id! {
    /// The ID that etcd gives a member. No other member of its cluster ever has it.
    MemberId
}

id! {
    /// The ID that etcd gives a cluster when it is bootstrapped.
    ClusterId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_etcd_prints_them() {
        assert_eq!(MemberId(0x8e9e_05c5_2164_694d).to_string(), "8e9e05c52164694d");
        assert_eq!(ClusterId(0x0bf2_73ea_6e24_9d35).to_string(), "bf273ea6e249d35", "not padded");
        assert_eq!(MemberId(0).to_string(), "0");
        assert_eq!(MemberId(u64::MAX).to_string(), "ffffffffffffffff");
        assert_eq!(format!("{:?}", ClusterId(0xc)), "ClusterId(c)", "also in logs");
    }

    #[test]
    fn ids_survive_a_round_trip() {
        for id in [0, 1, 0x0bf2_73ea_6e24_9d35, 0x8e9e_05c5_2164_694d, u64::MAX].map(MemberId) {
            assert_eq!(MemberId::parse(&id.to_string()), Some(id));
        }
    }

    #[test]
    fn malformed_ids_are_not_parsed() {
        for text in ["", "g", "0x1", "+1", "-1", "01", "8E9E05C52164694D", " 1", "10000000000000000"] {
            assert_eq!(ClusterId::parse(text), None, "{text:?}");
        }
    }
}
