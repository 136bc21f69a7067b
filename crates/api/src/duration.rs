//! Lengths of time as users write them: `100ms`, `30s`, `5m`, `1h30m`, or `0` for never.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The units of time and how many milliseconds they have. `ms` comes before `m`, which it begins with.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];

/// The length of time that was written. `None` if it is not one; the API server refuses those.
pub fn parse(written: &IntOrString) -> Option<Duration> {
    match written {
        IntOrString::Int(0) => Some(Duration::ZERO),
        IntOrString::Int(_) => None,
        IntOrString::String(text) if text == "0" => Some(Duration::ZERO),
        IntOrString::String(text) => with_units(text),
    }
}

/// The same where a bare number has always meant milliseconds, as for the flags of etcd.
pub fn parse_or_milliseconds(written: &IntOrString) -> Option<Duration> {
    match written {
        IntOrString::Int(number) => u64::try_from(*number).ok().map(Duration::from_millis),
        IntOrString::String(text) => text.parse().ok().map(Duration::from_millis).or_else(|| with_units(text)),
    }
}

fn with_units(text: &str) -> Option<Duration> {
    let (mut milliseconds, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (digits, tail) = rest.split_at(end);
        let (unit, worth) = UNITS.into_iter().find(|(unit, _)| tail.starts_with(unit))?;
        milliseconds = milliseconds.checked_add(digits.parse::<u64>().ok()?.checked_mul(worth)?)?;
        rest = &tail[unit.len()..];
    }
    (!text.is_empty()).then(|| Duration::from_millis(milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        parse(&IntOrString::String(text.to_owned())).map(|duration| duration.as_secs())
    }

    #[test]
    fn durations_with_units_are_parsed() {
        assert_eq!(["30s", "5m", "1h30m", "0s", "0"].map(seconds), [Some(30), Some(300), Some(5400), Some(0), Some(0)]);
        assert_eq!(parse(&IntOrString::Int(0)), Some(Duration::ZERO));
    }

    #[test]
    fn bare_numbers_are_parsed_as_milliseconds() {
        let milliseconds = |written: IntOrString| parse_or_milliseconds(&written).map(|it| it.as_millis());
        assert_eq!(milliseconds(IntOrString::Int(100)), Some(100));
        let texts =
            ["100", "100ms", "1s500ms", "2m", "soon", ""].map(|it| milliseconds(IntOrString::String(it.into())));
        assert_eq!(texts, [Some(100), Some(100), Some(1500), Some(120_000), None, None]);
    }

    #[test]
    fn text_that_is_no_duration_is_not_parsed() {
        for text in ["", "5", "m", "5 m", "-5m", "5d", "99999999999999999999s", "9999999999999999999h"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(parse(&IntOrString::Int(30)), None);
    }
}
