//! Checks that no source file imports, directly or indirectly, a file that imports it.

mod graph;
mod modules;
mod tokens;

use crate::shell::{Outcome, root};
use graph::{components, edges};
use modules::{Modules, Sources};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Checks the crates under `crates` and this one.
pub fn check() -> Outcome {
    eprintln!("== import cycles");
    let mut found = String::new();
    for folder in crates()? {
        let mut sources = Sources::new();
        read(&root().join(&folder), "", &mut sources)?;
        for file in ["lib.rs", "main.rs"].into_iter().filter(|file| sources.contains_key(*file)) {
            found += &report(&folder, &Modules::new(&sources, file));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(format!("files that import one another:\n{found}")) }
}

/// Returns the source folders, relative to the root.
fn crates() -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root().join("crates")).map_err(|e| format!("crates: {e}"))?;
    let names =
        entries.flatten().map(|e| format!("crates/{}/src", e.file_name().to_string_lossy()));
    let mut folders: Vec<String> = names.chain(["xtask/src".into()]).collect();
    folders.sort();
    Ok(folders)
}

/// Reads the Rust files of a folder and its subfolders.
fn read(folder: &Path, below: &str, sources: &mut Sources) -> Outcome {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            read(&path, &format!("{below}{name}/"), sources)?;
        } else if name.ends_with(".rs") {
            sources.insert(format!("{below}{name}"), fs::read_to_string(&path).map_err(failed)?);
        }
    }
    Ok(())
}

/// Describes every cycle with the imports that cause it; empty if there is none.
fn report(folder: &str, modules: &Modules) -> String {
    let edges = edges(modules);
    let mut text = String::new();
    for component in components(modules.files.len(), &edges) {
        let _ = writeln!(text, "{folder}: a cycle of {} files", component.len());
        for ((from, to), names) in &edges {
            if component.contains(from) && component.contains(to) {
                let names: Vec<String> =
                    names.iter().map(|(name, line)| format!("{name} (line {line})")).collect();
                let (from, to) = (&modules.files[*from], &modules.files[*to]);
                let _ = writeln!(text, "  {from} imports {to}: {}", names.join(", "));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cycles in a crate with the given files, as sorted lists of names.
    fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources =
            files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        let modules = Modules::new(&sources, "lib.rs");
        let components = components(modules.files.len(), &edges(&modules));
        let names = |component: std::collections::BTreeSet<usize>| {
            let mut names: Vec<String> =
                component.iter().map(|&f| modules.files[f].clone()).collect();
            names.sort();
            names
        };
        components.into_iter().map(names).collect()
    }

    #[test]
    fn one_way_is_no_cycle() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a.rs", "pub struct A;"),
            ("b.rs", "use crate::A; pub struct B(A);"),
        ];
        assert!(cycles(&files).is_empty());
    }

    #[test]
    fn two_files_and_three() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B; fn f(a: crate::a::A) {}"),
            ("c.rs", "use super::d; fn f() { d::g() }"),
            ("d.rs", "use super::e::{self, h as i}; pub fn g() {}"),
            ("e.rs", "pub fn h() { crate::c::f() }"),
        ];
        assert_eq!(cycles(&files), [vec!["a.rs", "b.rs"], vec!["c.rs", "d.rs", "e.rs"]]);
    }

    #[test]
    fn re_exports_are_followed_to_the_file_that_defines() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod x; mod y; pub use x::*; pub(crate) use y::Y as Z;"),
            ("a/x.rs", "use super::Z; pub struct X;"),
            ("a/y.rs", "use crate::b::X; pub struct Y;"),
            ("b.rs", "pub use crate::a::X;"),
        ];
        assert_eq!(cycles(&files), [["a/x.rs", "a/y.rs"]]);
    }

    #[test]
    fn a_parent_that_uses_its_child_may_define_nothing_for_it() {
        let lib = ("lib.rs", "mod a;");
        let parent = "mod x; use x::X; pub struct A(X);";
        let child = ("a/x.rs", "use super::A; pub struct X;");
        assert_eq!(cycles(&[lib, ("a/mod.rs", parent), child]), [["a/mod.rs", "a/x.rs"]]);
        let listing = "mod x; pub use x::X; pub struct A;";
        assert!(cycles(&[lib, ("a/mod.rs", listing), child]).is_empty());
        let listed_and_used = "mod x; pub use x::X; pub struct A(X);";
        assert_eq!(cycles(&[lib, ("a/mod.rs", listed_and_used), child]), [["a/mod.rs", "a/x.rs"]]);
    }

    #[test]
    fn globs_import_what_is_used() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::*; pub use b::*;"),
            ("a.rs", "use crate::*; pub struct A(B);"),
            ("b.rs", "use crate::*; pub struct B; fn f() -> A {}"),
        ];
        assert_eq!(cycles(&files), [["a.rs", "b.rs"]]);
    }

    #[test]
    fn tests_may_import_anything() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a::A; pub struct B;"),
        ];
        assert!(cycles(&files).is_empty());
    }

    #[test]
    fn the_report_names_lines() {
        let files =
            [("lib.rs", "mod a; mod b;"), ("a.rs", "\nuse crate::b;"), ("b.rs", "use crate::a;")];
        let sources = files.map(|(path, text)| (path.to_string(), text.to_string())).into();
        let text = report("src", &Modules::new(&sources, "lib.rs"));
        assert_eq!(
            text,
            "src: a cycle of 2 files\n  a.rs imports b.rs: crate::b (line 2)\n  b.rs imports a.rs: crate::a (line 1)\n"
        );
    }
}
