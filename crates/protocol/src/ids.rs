//! The IDs of members and clusters, written as etcd and `etcdctl` print them: in hexadecimal, lower case, not padded.

/// An ID as text, for example `8e9e05c52164694d`.
pub fn format_id(id: u64) -> String {
    format!("{id:x}")
}

/// The ID that a text stands for. `None` if it is not an ID as etcd prints it.
pub fn parse_id(text: &str) -> Option<u64> {
    let id = u64::from_str_radix(text, 16).ok()?;
    (format_id(id) == text).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_etcd_prints_them() {
        assert_eq!(format_id(0x8e9e_05c5_2164_694d), "8e9e05c52164694d");
        assert_eq!(format_id(0x0bf2_73ea_6e24_9d35), "bf273ea6e249d35", "not padded");
        assert_eq!(format_id(0), "0");
        assert_eq!(format_id(u64::MAX), "ffffffffffffffff");
    }

    #[test]
    fn ids_survive_a_round_trip() {
        for id in [0, 1, 0x0bf2_73ea_6e24_9d35, 0x8e9e_05c5_2164_694d, u64::MAX] {
            assert_eq!(parse_id(&format_id(id)), Some(id));
        }
    }

    #[test]
    fn malformed_ids_are_not_parsed() {
        for text in ["", "g", "0x1", "+1", "-1", "01", "8E9E05C52164694D", " 1", "10000000000000000"] {
            assert_eq!(parse_id(text), None, "{text:?}");
        }
    }
}
