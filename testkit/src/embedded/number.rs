//! Numbers as Redis reads and writes them, which is stricter than most.

/// A whole number as Redis takes it: no blanks, no plus, no zeros before it.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    plain.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

/// A number with a fraction as Redis takes it, infinite if it says so. Of hexadecimal ones this
/// takes the whole only.
pub(super) fn float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some((sign, digits)) = text.split_once("0x").or_else(|| text.split_once("0X")) {
        let number = u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))? as f64;
        return match sign {
            "" | "+" => Some(number),
            "-" => Some(-number),
            _ => None,
        };
    }
    let number: f64 = text.parse().ok()?;
    let is_named = text.bytes().any(|byte| byte.eq_ignore_ascii_case(&b'i'));
    let mantissa = text.split(['e', 'E']).next().unwrap_or("");
    let is_zero = !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    let fits = number.is_infinite() == is_named && (number == 0.0) == (is_zero && !is_named);
    (fits && !number.is_nan()).then_some(number)
}

/// As C's `%.17g`, which is how Redis 7.0 writes scores, and the numbers that a script gives to a
/// command.
pub(super) fn text(number: f64) -> String {
    if !number.is_finite() {
        let name = if number.is_nan() { "nan" } else { "inf" };
        return if number.is_sign_negative() { format!("-{name}") } else { name.to_owned() };
    }
    let scientific = format!("{number:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("it was written with one");
    let exponent: i32 = exponent.parse().expect("it is a number");
    match exponent {
        -4..=16 => {
            let places = usize::try_from(16 - exponent).expect("16 is the most");
            without_zeros(&format!("{number:.places$}")).to_owned()
        }
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
        }
    }
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_taken_strictly() {
        for (text, number) in [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(integer(text.as_bytes()), Some(number), "{text}");
        }
        for text in ["", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "9223372036854775808", "x", "1e3"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn fractions_are_taken_as_strtod_does() {
        let infinite = f64::INFINITY;
        for (text, number) in
            [("1e3", 1e3), (".5", 0.5), ("+5.", 5.0), ("-inf", -infinite), ("0e9", 0.0), ("-0x10", -16.0)]
        {
            assert_eq!(float(text.as_bytes()), Some(number), "{text}");
        }
        for text in ["", "nan", " 1", "1 ", "1e999", "1e-999", "x", "0x", "10x10", "0x+1"] {
            assert_eq!(float(text.as_bytes()), None, "{text}");
        }
    }

    /// As `printf '%.17g'` writes them.
    #[test]
    fn numbers_are_written_with_seventeen_digits() {
        for (number, written) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (0.1, "0.10000000000000001"),
            (-2.5, "-2.5"),
            (0.0001, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (12_345_678_901_234_567.0, "12345678901234568"),
            (1e17, "1e+17"),
            (1e20, "1e+20"),
            (1.5e300, "1.5000000000000001e+300"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(text(number), written);
        }
    }
}
