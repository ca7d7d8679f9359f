//! Escapes text for SVG and HTML, and replaces characters that would break or disguise it.

/// Escapes text for SVG and HTML, including attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Tooltips contain several lines.
            '\n' => safe.push('\n'),
            c => safe.push(visible(c)),
        }
    }
    safe
}

/// Replaces characters that would be invisible: control characters, which XML forbids, and those
/// that reorder text.
fn visible(c: char) -> char {
    match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        '\u{80}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c => c,
    }
}

/// Shortens a name to one line of at most `most` characters.
pub fn shorten(text: &str, most: usize) -> String {
    let mut line = text.chars().map(|c| if c == '\n' { '\u{240a}' } else { visible(c) });
    let start: String = line.by_ref().take(most).collect();
    match line.next() {
        None => start,
        Some(_) => start.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_an_attribute() {
        assert_eq!(escape("<a b='c' d=\"&\">"), "&lt;a b=&#39;c&#39; d=&quot;&amp;&quot;&gt;");
        assert_eq!(escape("a\0b\x1b\x7f\u{85}\u{ffff}\u{202e}"), "a␀b␛␡\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(escape("π ≤ 🦀"), "π ≤ 🦀");
    }

    #[test]
    fn long_names_are_shortened_between_characters() {
        assert_eq!(shorten("short", 5), "short");
        assert_eq!(shorten("longer", 5), "long…");
        assert_eq!(shorten(&"🦀".repeat(300), 3), "🦀🦀…");
        assert_eq!(shorten("a\nb", 5), "a␊b");
    }
}
