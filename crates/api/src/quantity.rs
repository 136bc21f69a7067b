//! Amounts as Kubernetes writes them, such as `10Gi` and `500m`, as numbers.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

const NANOS: i128 = 1_000_000_000;

/// The amount as a whole number, rounded up, as Kubernetes does. `None` if it is no amount or does not fit.
pub fn rounded_up(quantity: &Quantity) -> Option<i64> {
    let nanos = nanos(&quantity.0)?;
    i64::try_from(nanos.div_euclid(NANOS) + i128::from(nanos.rem_euclid(NANOS) > 0)).ok()
}

/// The amount as a whole number, rounded down. `None` if it is no amount or does not fit.
pub fn rounded_down(quantity: &Quantity) -> Option<i64> {
    i64::try_from(nanos(&quantity.0)?.div_euclid(NANOS)).ok()
}

/// Whether both mean the same, however they are written: `1Gi` and `1024Mi` do.
pub fn same_amount(one: &Quantity, other: &Quantity) -> bool {
    one == other || (nanos(&one.0).is_some() && nanos(&one.0) == nanos(&other.0))
}

/// The amount in billionths, the smallest part that an amount can have; what is smaller is cut off.
fn nanos(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let mut digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let mut decimals = -i32::try_from(fraction.len()).ok()?;
    match unit(suffix)? {
        Unit::Binary(power) => digits = digits.checked_mul(1024_i128.checked_pow(power)?)?,
        Unit::Decimal(power) => decimals = decimals.checked_add(power)?,
    }
    let shift = decimals.checked_add(9)?;
    let scale = 10_i128.checked_pow(shift.unsigned_abs());
    let nanos = if shift >= 0 { digits.checked_mul(scale?)? } else { scale.map_or(0, |scale| digits / scale) };
    Some(if negative { -nanos } else { nanos })
}

enum Unit {
    /// A power of 1024.
    Binary(u32),
    /// A power of ten.
    Decimal(i32),
}

fn unit(suffix: &str) -> Option<Unit> {
    Some(match suffix {
        "n" => Unit::Decimal(-9),
        "u" => Unit::Decimal(-6),
        "m" => Unit::Decimal(-3),
        "" => Unit::Decimal(0),
        "k" => Unit::Decimal(3),
        "M" => Unit::Decimal(6),
        "G" => Unit::Decimal(9),
        "T" => Unit::Decimal(12),
        "P" => Unit::Decimal(15),
        "E" => Unit::Decimal(18),
        "Ki" => Unit::Binary(1),
        "Mi" => Unit::Binary(2),
        "Gi" => Unit::Binary(3),
        "Ti" => Unit::Binary(4),
        "Pi" => Unit::Binary(5),
        "Ei" => Unit::Binary(6),
        _ => Unit::Decimal(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(text: &str) -> Option<i64> {
        rounded_up(&Quantity(text.into()))
    }

    fn down(text: &str) -> Option<i64> {
        rounded_down(&Quantity(text.into()))
    }

    #[test]
    fn storage_quantities_are_rounded_up_to_bytes() {
        assert_eq!(up("1073741824"), Some(1 << 30));
        assert_eq!(up("4Gi"), Some(4 << 30));
        assert_eq!(up("1.5Gi"), Some(3 << 29));
        assert_eq!(up("8G"), Some(8_000_000_000));
        assert_eq!(up("1e3"), Some(1000));
        assert_eq!(up("1E3"), Some(1000));
        assert_eq!(up("2E"), Some(2_000_000_000_000_000_000));
        assert_eq!(up("0.5"), Some(1));
        assert_eq!(up(".5k"), Some(500));
        assert_eq!(up("+1."), Some(1));
    }

    #[test]
    fn cpu_quantities_are_rounded_down_to_whole_processors() {
        assert_eq!(down("1900m"), Some(1));
        assert_eq!(down("2.9"), Some(2));
        assert_eq!(down("100m"), Some(0));
        assert_eq!(down("-1"), Some(-1));
        assert_eq!(down("-0.5"), Some(-1));
        assert_eq!(up("-0.5"), Some(0));
    }

    #[test]
    fn equal_quantities_in_different_units_are_the_same() {
        let same = |one: &str, other: &str| same_amount(&Quantity(one.into()), &Quantity(other.into()));
        assert!(same("1Gi", "1024Mi") && same("0.5", "500m") && same("many", "many"));
        assert!(!same("1Gi", "1G") && !same("many", "few"));
    }

    #[test]
    fn malformed_and_too_large_quantities_are_not_parsed() {
        for text in ["", "Gi", "many", "1 Gi", "1gi", "1.2.3", "--1", "1e", "9Ei9", "16Ei", "1e99", "1e999999999999"] {
            assert_eq!(up(text), None, "{text:?}");
        }
        assert_eq!(up("1e-99"), Some(0));
    }
}
