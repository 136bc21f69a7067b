//! Lengths of time as users write them: `30s`, `5m`, `1h30m`, or `0` for never.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The length of time that was written. `None` if it is not one; the API server refuses those.
pub fn parse(written: &IntOrString) -> Option<Duration> {
    let text = match written {
        IntOrString::Int(number) => return (*number == 0).then_some(Duration::ZERO),
        IntOrString::String(text) => text.as_str(),
    };
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut seconds, mut digits) = (0_u64, String::new());
    for letter in text.chars() {
        let unit = match letter {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            digit => {
                digits.push(digit);
                continue;
            }
        };
        seconds = seconds.checked_add(digits.parse::<u64>().ok()?.checked_mul(unit)?)?;
        digits.clear();
    }
    (digits.is_empty() && !text.is_empty()).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        parse(&IntOrString::String(text.to_owned())).map(|duration| duration.as_secs())
    }

    #[test]
    fn durations_are_read() {
        assert_eq!(["30s", "5m", "1h30m", "0s", "0"].map(seconds), [Some(30), Some(300), Some(5400), Some(0), Some(0)]);
        assert_eq!(parse(&IntOrString::Int(0)), Some(Duration::ZERO));
    }

    #[test]
    fn anything_else_is_none() {
        for text in ["", "5", "m", "5 m", "-5m", "5d", "99999999999999999999s", "9999999999999999999h"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(parse(&IntOrString::Int(30)), None);
    }
}
