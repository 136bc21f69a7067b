//! etcd counts in signed numbers, and its client in unsigned ones because none of them is negative: nothing is lost between
//! the two.

pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
