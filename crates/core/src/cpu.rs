//! How many threads etcd should use, from the CPU limit of its container.

/// The value of `GOMAXPROCS` for a CPU limit: the whole CPUs in it, and at least one. None if it is no amount.
pub fn gomaxprocs(limit: &str) -> Option<u64> {
    let (number, factor) = match limit.strip_suffix(['n', 'u', 'm', 'k', 'M', 'G']) {
        Some(number) => (number, factor(limit.chars().last()?)?),
        None => (limit, 1.0),
    };
    let cpus = number.trim().parse::<f64>().ok().filter(|number| number.is_finite())? * factor;
    // A little above, because 2000 times a thousandth must be two.
    Some((cpus + 1e-9).floor().max(1.0) as u64)
}

fn factor(suffix: char) -> Option<f64> {
    Some(match suffix {
        'n' => 1e-9,
        'u' => 1e-6,
        'm' => 1e-3,
        'k' => 1e3,
        'M' => 1e6,
        'G' => 1e9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_cpus_and_at_least_one() {
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
            ("1e1", 10),
        ];
        for (limit, threads) in cases {
            assert_eq!(gomaxprocs(limit), Some(threads), "{limit}");
        }
        assert_eq!(gomaxprocs("many"), None);
    }
}
