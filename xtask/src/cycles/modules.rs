//! The modules of a crate as declared in its source files, with the definitions, imports and
//! mentions of each. Code under `#[cfg(test)]` is ignored.

use super::tokens::{Token, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// Source files by their path below `src`, with `/` between folders.
pub type Sources = BTreeMap<String, String>;

/// A crate from one root file; the root module comes first.
#[derive(Default)]
pub struct Modules {
    pub files: Vec<String>,
    pub modules: Vec<Module>,
}

#[derive(Default)]
pub struct Module {
    /// Index of its file.
    pub file: usize,
    pub parent: usize,
    pub children: BTreeMap<String, usize>,
    /// Names of its definitions, except modules.
    pub items: BTreeSet<String>,
    pub imports: Vec<Import>,
    /// Paths of two or more names outside `use`.
    pub mentions: Vec<Mention>,
    /// Single names of types or calls, with the first line of each.
    pub words: BTreeMap<String, usize>,
}

/// One leaf of a `use` tree.
pub struct Import {
    pub path: Vec<String>,
    /// `None` for `*`.
    pub name: Option<String>,
    pub line: usize,
    /// `pub use`, whatever the visibility.
    pub public: bool,
}

/// A path in code.
pub struct Mention {
    pub path: Vec<String>,
    pub line: usize,
}

impl Modules {
    /// Reads all modules that `root`, for example `lib.rs`, declares.
    pub fn new(sources: &Sources, root: &str) -> Self {
        let mut modules = Modules::default();
        modules.file(sources, root.to_string(), 0);
        modules
    }

    fn file(&mut self, sources: &Sources, path: String, parent: usize) -> usize {
        let folder = match path.rsplit_once('/') {
            _ if path == "lib.rs" || path == "main.rs" => String::new(),
            Some((folder, "mod.rs")) => format!("{folder}/"),
            _ => format!("{}/", path.trim_end_matches(".rs")),
        };
        let found = tokens(sources.get(&path).map_or("", String::as_str));
        self.files.push(path);
        let module = self.add(self.files.len() - 1, parent);
        Scan { modules: self, sources, folder }.module(module, &found);
        module
    }

    fn add(&mut self, file: usize, parent: usize) -> usize {
        self.modules.push(Module { file, parent, ..Module::default() });
        self.modules.len() - 1
    }
}

/// Reads the tokens of one file, or of a module within it.
struct Scan<'a> {
    modules: &'a mut Modules,
    sources: &'a Sources,
    /// The folder of the files of child modules, with a slash at the end.
    folder: String,
}

impl Scan<'_> {
    fn module(&mut self, module: usize, tokens: &[Token]) {
        let (mut at, mut depth) = (0, 0usize);
        while at < tokens.len() {
            let token = &tokens[at];
            let next = tokens.get(at + 1).and_then(Token::word);
            if token.is('#') {
                at = attribute(tokens, at);
                continue;
            }
            depth =
                if token.is('{') { depth + 1 } else { depth.saturating_sub(token.is('}').into()) };
            match (token.word(), next) {
                // `use<'a>` in a type imports nothing.
                (Some("use"), _) if !tokens.get(at + 1).is_some_and(|t| t.is('<')) => {
                    at = self.import(module, tokens, at);
                    continue;
                }
                (Some("mod"), Some(name)) => {
                    at = self.child(module, name, tokens, at + 2);
                    continue;
                }
                (
                    Some(
                        "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static",
                    ),
                    Some(name),
                ) if depth == 0 && !matches!(name, "fn" | "unsafe" | "async" | "extern") => {
                    self.modules.modules[module].items.insert(name.to_string());
                    at += 2;
                    continue;
                }
                (Some("macro_rules"), _) => {
                    if let Some(name) = tokens.get(at + 2).and_then(Token::word) {
                        self.modules.modules[module].items.insert(name.to_string());
                    }
                    at += 3;
                    continue;
                }
                (Some(_), _) => at = self.mention(module, tokens, at),
                (None, _) => at += 1,
            }
        }
    }

    /// Reads `use …;`, starting at its keyword.
    fn import(&mut self, module: usize, tokens: &[Token], at: usize) -> usize {
        let end = (at..tokens.len()).find(|&i| tokens[i].is(';')).unwrap_or(tokens.len());
        let mut leaves = Vec::new();
        tree(&tokens[at + 1..end], &mut 0, &[], &mut leaves);
        let public = public(&tokens[..at]);
        let line = |name: &Token| name.line;
        let imports = leaves.into_iter().map(|(path, name, token)| {
            let line = token.map_or(tokens[at].line, line);
            Import { path, name, line, public }
        });
        self.modules.modules[module].imports.extend(imports);
        end + 1
    }

    /// Reads `mod name;` or `mod name { … }` after the name.
    fn child(&mut self, module: usize, name: &str, tokens: &[Token], at: usize) -> usize {
        let (child, end) = if tokens.get(at).is_some_and(|t| t.is('{')) {
            let end = close(tokens, at);
            let child = self.modules.add(self.modules.modules[module].file, module);
            let folder = format!("{}{name}/", self.folder);
            let mut scan = Scan { modules: self.modules, sources: self.sources, folder };
            scan.module(child, &tokens[at + 1..end]);
            (child, end)
        } else {
            let paths =
                [format!("{}{name}.rs", self.folder), format!("{}{name}/mod.rs", self.folder)];
            let Some(path) = paths.into_iter().find(|path| self.sources.contains_key(path)) else {
                return at + 1;
            };
            (self.modules.file(self.sources, path, module), at)
        };
        self.modules.modules[module].children.insert(name.to_string(), child);
        end + 1
    }

    /// Reads a word in code, and the path that it starts.
    fn mention(&mut self, module: usize, tokens: &[Token], at: usize) -> usize {
        let mut end = at + 1;
        while colons(tokens, end) && tokens.get(end + 2).is_some_and(|t| t.word().is_some()) {
            end += 3;
        }
        let path: Vec<String> =
            tokens[at..end].iter().filter_map(|t| t.word().map(str::to_string)).collect();
        // A method, a field or a definition is not a mention.
        let inside = at > 0
            && (tokens[at - 1].is('.')
                || tokens[at - 1].word() == Some("fn")
                || (at > 1 && colons(tokens, at - 2)));
        let module = &mut self.modules.modules[module];
        let line = tokens[at].line;
        if !inside && path.len() > 1 {
            module.mentions.push(Mention { path, line });
        } else if !inside && names_something(tokens, at) {
            module.words.entry(path[0].clone()).or_insert(line);
        }
        end
    }
}

/// Returns whether a single word is the name of a type, a constant or a call.
fn names_something(tokens: &[Token], at: usize) -> bool {
    let called = |next: &Token| next.is('(') || next.is('!');
    tokens[at].word().is_some_and(|word| word.starts_with(char::is_uppercase))
        || tokens.get(at + 1).is_some_and(called)
        || colons(tokens, at + 1)
}

/// Returns whether there is a `::` at this token.
fn colons(tokens: &[Token], at: usize) -> bool {
    tokens.get(at..at + 2).is_some_and(|pair| pair.iter().all(|t| t.is(':')))
}

/// Returns the position at which the bracket at `open` is closed.
fn close(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if ['{', '(', '['].iter().any(|&c| token.is(c)) {
            depth += 1;
        } else if ['}', ')', ']'].iter().any(|&c| token.is(c)) {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at;
            }
        }
    }
    tokens.len()
}

/// Skips an attribute, and the item after it if that is compiled for tests only.
fn attribute(tokens: &[Token], at: usize) -> usize {
    let Some(open) = (at + 1..tokens.len().min(at + 3)).find(|&i| tokens[i].is('[')) else {
        return at + 1;
    };
    let end = close(tokens, open);
    let words: Vec<&str> =
        tokens[open..end.min(tokens.len())].iter().filter_map(Token::word).collect();
    let inner = tokens[at + 1].is('!');
    let test = words.first() == Some(&"cfg") && words.contains(&"test") && !words.contains(&"not");
    if test && !inner { item_end(tokens, end + 1) } else { end + 1 }
}

/// Returns the end of the item that starts here, including further attributes.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    while tokens.get(at).is_some_and(|t| t.is('#')) {
        at = close(tokens, at + 1) + 1;
    }
    let import = |at: usize| tokens[at].word() == Some("use");
    let mut imports = false;
    while at < tokens.len() {
        imports |= import(at);
        let token = &tokens[at];
        if token.is(';') {
            return at + 1;
        }
        if token.is('}') {
            return at;
        }
        if token.is('{') && !imports {
            return close(tokens, at) + 1;
        }
        at = if ['{', '(', '['].iter().any(|&c| token.is(c)) {
            close(tokens, at) + 1
        } else {
            at + 1
        };
    }
    at
}

/// Returns whether the tokens end with `pub` or `pub(…)`.
fn public(tokens: &[Token]) -> bool {
    let last = |tokens: &[Token]| tokens.last().is_some_and(|t| t.word() == Some("pub"));
    let open = tokens.iter().rposition(|t| t.is('('));
    last(tokens)
        || (tokens.last().is_some_and(|t| t.is(')')) && open.is_some_and(|at| last(&tokens[..at])))
}

type Leaf<'a> = (Vec<String>, Option<String>, Option<&'a Token>);

/// Expands a `use` tree from `at` up to the comma or brace that ends it.
fn tree<'a>(tokens: &'a [Token], at: &mut usize, before: &[String], leaves: &mut Vec<Leaf<'a>>) {
    let mut path = before.to_vec();
    let mut last = None;
    while let Some(token) = tokens.get(*at) {
        if token.is(',') || token.is('}') {
            break;
        }
        *at += 1;
        if token.is('{') {
            while tokens.get(*at).is_some_and(|t| !t.is('}')) {
                tree(tokens, at, &path, leaves);
                *at += usize::from(tokens.get(*at).is_some_and(|t| t.is(',')));
            }
            *at += 1;
            return;
        }
        match token.word() {
            Some("as") => {
                let name = tokens.get(*at).and_then(Token::word).map(str::to_string);
                *at += 1;
                return leaves.push((path, name, last));
            }
            // `a::{self}` is `a` itself.
            Some("self") if !path.is_empty() => last = Some(token),
            Some(word) => {
                path.push(word.to_string());
                last = Some(token);
            }
            None if token.is('*') => return leaves.push((path, None, Some(token))),
            None => {}
        }
    }
    if let Some(name) = path.last().cloned() {
        leaves.push((path, Some(name), last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Module {
        let sources = Sources::from([("lib.rs".to_string(), text.to_string())]);
        Modules::new(&sources, "lib.rs").modules.remove(0)
    }

    fn imports(text: &str) -> Vec<String> {
        let path =
            |i: &Import| format!("{} {}", i.path.join("::"), i.name.as_deref().unwrap_or("*"));
        module(text).imports.iter().map(path).collect()
    }

    #[test]
    fn use_trees_are_expanded() {
        assert_eq!(
            imports("use crate::{a::{self, B as C, d::*}, e, self as f,}; use g;"),
            ["crate::a a", "crate::a::B C", "crate::a::d *", "crate::e e", "crate f", "g g"]
        );
    }

    #[test]
    fn visibility_is_seen() {
        let text = "pub use a::A; pub(crate) use b::B; use c::C; fn f(x: u8) { use d::D; }";
        let public: Vec<bool> = module(text).imports.iter().map(|i| i.public).collect();
        assert_eq!(public, [true, true, false, false]);
    }

    #[test]
    fn code_for_tests_is_left_out() {
        let text = "#[cfg(test)] use a::A; #[cfg(test)] #[allow(x)] mod tests { use super::*; fn f() {} }
            #[cfg(all(test, unix))] fn g(a: [u8; 2]) { b::c() } #[cfg(not(test))] use d::D; struct E;";
        let module = module(text);
        assert_eq!(module.imports.len(), 1);
        assert!(module.mentions.is_empty() && module.children.is_empty());
        assert_eq!(module.items.into_iter().collect::<Vec<_>>(), ["E"]);
    }

    #[test]
    fn items_are_those_of_the_module() {
        let text =
            "pub const fn a() {} static B: u8 = 1; impl C { fn d() {} } const E: [u8; 2] = [0; 2];
            macro_rules! f { () => {} } mod g { struct H; }";
        let items: Vec<String> = module(text).items.into_iter().collect();
        assert_eq!(items, ["B", "E", "a", "f"]);
    }

    #[test]
    fn paths_in_code_are_found_once() {
        let text = "fn f(x: crate::a::B) -> super::C { x.g::<u8>(); d::<E>(); Vec::new() }";
        let module = module(text);
        let paths: Vec<String> = module.mentions.iter().map(|m| m.path.join("::")).collect();
        assert_eq!(paths, ["crate::a::B", "super::C", "Vec::new"]);
        assert_eq!(module.words.into_keys().collect::<Vec<_>>(), ["E", "d"]);
    }
}
