//! Rust source as words and punctuation, without comments, strings, characters, numbers and
//! lifetimes.

/// A word or a sign, with its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Word(String),
    Sign(char),
}

impl Token {
    pub fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            Kind::Sign(_) => None,
        }
    }

    pub fn is(&self, sign: char) -> bool {
        self.kind == Kind::Sign(sign)
    }
}

pub fn tokens(text: &str) -> Vec<Token> {
    let mut reader = Reader { text, line: 1 };
    let mut found = Vec::new();
    while let Some(first) = reader.text.chars().next() {
        let line = reader.line;
        if let Some(kind) = reader.next(first) {
            found.push(Token { kind, line });
        }
    }
    found
}

/// The unread part of the text.
struct Reader<'a> {
    text: &'a str,
    line: usize,
}

impl Reader<'_> {
    /// Reads the token that starts with `first`.
    fn next(&mut self, first: char) -> Option<Kind> {
        if self.text.starts_with("//") {
            self.take(self.text.find('\n').unwrap_or(self.text.len()));
        } else if self.text.starts_with("/*") {
            self.take(block_comment(self.text));
        } else if let Some(length) = string(self.text) {
            self.take(length);
        } else if first == '\'' {
            self.take(quoted(self.text));
        } else if first.is_ascii_digit() {
            self.take(run(self.text));
        } else if first.is_alphabetic() || first == '_' {
            // A raw identifier is the identifier without its prefix.
            if self.text.starts_with("r#") {
                self.take(2);
            }
            let word = self.text[..run(self.text)].to_string();
            self.take(word.len());
            return Some(Kind::Word(word));
        } else {
            self.take(first.len_utf8());
            return (!first.is_whitespace()).then_some(Kind::Sign(first));
        }
        None
    }

    fn take(&mut self, length: usize) {
        let (taken, rest) = self.text.split_at(length);
        self.line += taken.matches('\n').count();
        self.text = rest;
    }
}

/// Returns the length of the letters, digits and underscores at the start of the text.
fn run(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Returns the length of a block comment; block comments can be nested.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// Returns the length of the string literal at the start of the text: `"…"`, `b"…"`, `c"…"`,
/// `r#"…"#` and so on.
fn string(text: &str) -> Option<usize> {
    let prefix = text.find(|c| !matches!(c, 'b' | 'c' | 'r')).unwrap_or(text.len());
    let raw = text[..prefix].ends_with('r');
    let hashes = text[prefix..].find(|c| c != '#').unwrap_or(0);
    let open = prefix + hashes;
    if prefix > 2 || (hashes > 0 && !raw) || !text[open..].starts_with('"') {
        return None;
    }
    if raw {
        let close = format!("\"{}", "#".repeat(hashes));
        let end = text[open + 1..].find(&close).map(|at| open + 1 + at + close.len());
        return Some(end.unwrap_or(text.len()));
    }
    Some(open + escaped(&text[open..], '"'))
}

/// Returns the length of a character literal, or of the tick of a lifetime.
fn quoted(text: &str) -> usize {
    let mut rest = text[1..].chars();
    match (rest.next(), rest.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => escaped(text, '\''),
        _ => 1 + run(&text[1..]),
    }
}

/// Returns the length of a literal that ends with `close`, with a backslash as the escape
/// character.
fn escaped(text: &str, close: char) -> usize {
    let mut escape = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escape => escape = false,
            '\\' => escape = true,
            _ if c == close => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokens(text).iter().filter_map(|t| t.word().map(str::to_string)).collect()
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        let text = r####"
            a // use b
            /* use c /* nested */ still */ d "use e \" f" g r#"use " h"# i b"j" 'k' '\'' l 'm: n 1e5f32 'é' o
        "####;
        assert_eq!(words(text), ["a", "d", "g", "i", "l", "n", "o"]);
    }

    #[test]
    fn raw_identifiers_and_words_that_look_like_prefixes() {
        assert_eq!(words("r#type br crate b r"), ["type", "br", "crate", "b", "r"]);
    }

    #[test]
    fn lines_are_counted_through_literals() {
        let found = tokens("a\n/*\n*/ \"\n\" b");
        assert_eq!((found[0].line, found[1].line), (1, 4));
    }
}
