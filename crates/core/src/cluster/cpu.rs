//! How many threads etcd should use, from the CPU limit of its container.

use etcd_operator_api::quantity::rounded_down;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The value of `GOMAXPROCS` for a CPU limit: its whole CPUs, and at least one. `None` if it is not a valid quantity.
pub fn gomaxprocs(limit: &Quantity) -> Option<i64> {
    rounded_down(limit).map(|cpus| cpus.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gomaxprocs_is_whole_cpus_and_at_least_one() {
        let cases = [
            ("-1", 1),
            ("0", 1),
            ("0.1", 1),
            ("1.9", 1),
            ("2", 2),
            ("2.9", 2),
            ("200m", 1),
            ("2000m", 2),
            ("3500m", 3),
        ];
        for (limit, threads) in cases {
            assert_eq!(gomaxprocs(&Quantity(limit.to_owned())), Some(threads), "{limit}");
        }
        assert_eq!(gomaxprocs(&Quantity("many".to_owned())), None);
    }
}
