//! Numbers as people write them.

pub use nysketch::recipe::words::short;

/// Formats a number with its noun: "1 row", "2 rows", "3 frequencies", "4 witnesses", "5 days".
pub fn count(n: u64, what: &str) -> String {
    let one = thousands(n);
    // "days", but "frequencies".
    let stem = what.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match (n, stem) {
        (1, _) => format!("{one} {what}"),
        (_, Some(stem)) => format!("{one} {stem}ies"),
        (_, None) if what.ends_with('s') => format!("{one} {what}es"),
        (_, None) => format!("{one} {what}s"),
    }
}

/// Formats `12345678` as `12,345,678`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Rounds to the nearest whole number and adds separators.
pub fn thousands_signed(x: f64) -> String {
    let sign = if x < -0.5 { "-" } else { "" };
    format!("{sign}{}", thousands(x.abs().round() as u64))
}

/// Formats a size in bytes.
pub fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Formats a share: "61.3 %", "0.42 %".
pub fn percent(share: f64) -> String {
    let digits = if share < 0.01 { 2 } else { 1 };
    format!("{:.digits$} %", 100.0 * share)
}

/// Formats several numbers.
pub fn list(values: &[f64]) -> String {
    values.iter().map(|v| short(*v)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(count(2, "day"), "2 days");
        assert_eq!(count(3, "frequency"), "3 frequencies");
        assert_eq!(thousands(12_345_678), "12,345,678");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(12.5), "12.5");
        assert_eq!(short(123_456.0), "123456");
        assert_eq!(short(1.23456e-9), "1.235e-9");
    }
}
