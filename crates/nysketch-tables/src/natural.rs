//! Natural sort order: 2 comes before 10.

use std::cmp::Ordering;
use std::path::Path;

/// Compares texts so that numbers in them are in increasing order: `part2` comes before `part10`.
///
/// Numbers of equal value are ordered by their leading zeros, so different texts never compare as
/// equal.
///
/// ```
/// use nysketch_tables::natural_order;
///
/// let mut names = ["day10", "day9", "Day1", "day09"];
/// names.sort_by(|a, b| natural_order(a, b));
/// assert_eq!(names, ["Day1", "day9", "day09", "day10"]);
/// ```
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a, b);
    while let (Some(p), Some(q)) = (x.chars().next(), y.chars().next()) {
        let order = if p.is_ascii_digit() && q.is_ascii_digit() {
            let (m, n) = (take_digits(&mut x), take_digits(&mut y));
            m.len().cmp(&n.len()).then_with(|| m.cmp(n))
        } else {
            (x, y) = (&x[p.len_utf8()..], &y[q.len_utf8()..]);
            p.cmp(&q)
        };
        if order.is_ne() {
            return order;
        }
    }
    x.len().cmp(&y.len()).then_with(|| a.len().cmp(&b.len())).then_with(|| a.cmp(b))
}

/// Compares paths component by component in [`natural_order`].
///
/// ```
/// use nysketch_tables::natural_path_order;
///
/// let mut paths = ["m10/1.csv", "m2/30.csv", "m2/4.csv"];
/// paths.sort_by(|a, b| natural_path_order(a.as_ref(), b.as_ref()));
/// assert_eq!(paths, ["m2/4.csv", "m2/30.csv", "m10/1.csv"]);
/// ```
pub fn natural_path_order(a: &Path, b: &Path) -> Ordering {
    let (mut x, mut y) = (a.components(), b.components());
    loop {
        let (p, q) = match (x.next(), y.next()) {
            (Some(p), Some(q)) => (p.as_os_str(), q.as_os_str()),
            (p, q) => return p.is_some().cmp(&q.is_some()).then_with(|| a.cmp(b)),
        };
        let order = natural_order(&p.to_string_lossy(), &q.to_string_lossy());
        if order.is_ne() {
            return order;
        }
    }
}

/// Removes the digits at the start of a text, and returns them without leading zeros.
fn take_digits<'a>(text: &mut &'a str) -> &'a str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    digits.trim_start_matches('0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_go_up() {
        let sorted = ["", "0", "00", "1", "01", "1a", "1a2", "1a10", "2", "10", "a", "a1b", "a01c"];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(natural_order(a, b), i.cmp(&j), "{a} {b}");
            }
        }
        let long = ["x99999999999999999999", "x100000000000000000000"];
        assert!(natural_order(long[0], long[1]).is_lt());
    }

    proptest! {
        #[test]
        fn it_is_an_order(mut texts in prop::collection::vec("[012a.-]{0,6}", 3)) {
            texts.sort_by(|a, b| natural_order(a, b));
            for i in 0..3 {
                for j in 0..3 {
                    let order = natural_order(&texts[i], &texts[j]);
                    prop_assert_eq!(order, natural_order(&texts[j], &texts[i]).reverse());
                    prop_assert_eq!(order.is_eq(), texts[i] == texts[j]);
                    prop_assert!(i >= j || order.is_le());
                }
            }
        }
    }
}
