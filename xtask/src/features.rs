//! Whether a dependency is built once. Cargo turns on the features that the packages asked for need, so a
//! dependency is built again where another choice of packages gives it other features.

use crate::shell::{Outcome, cargo, output};
use std::collections::{BTreeMap, BTreeSet};

/// What the tests build.
const TESTS: &str = "--workspace --edges normal,build,dev";
/// What else is built, and by whom.
const OTHERS: [(&str, &str); 3] = [
    ("docs and binaries", "--workspace --edges normal,build"),
    ("unit tests alone", "--workspace --exclude nysketch-python --edges normal,build,dev"),
    ("the wheel", "--package nysketch-python --edges normal,build"),
];

/// Features of every dependency, by name and version; one set for the host, one for the target.
type Features = BTreeMap<String, BTreeSet<String>>;

/// Fails where something is built more than once.
pub fn check() -> Outcome {
    let twice = twice()?;
    match twice.is_empty() {
        true => Ok(()),
        false => Err(format!("built more than once:\n  {}", twice.join("\n  "))),
    }
}

/// Says what is built more than once; the tests only take longer for it.
pub fn note() -> Outcome {
    for line in twice()? {
        eprintln!("   note: built again for {line}");
    }
    Ok(())
}

fn twice() -> Result<Vec<String>, String> {
    eprintln!("== features");
    let tests = features(TESTS)?;
    let mut twice = Vec::new();
    for (who, packages) in OTHERS {
        for (package, sets) in features(packages)? {
            let wanted = tests.get(&package).cloned().unwrap_or_default();
            if !sets.is_subset(&wanted) {
                let list =
                    |sets: BTreeSet<String>| sets.into_iter().collect::<Vec<_>>().join(" or ");
                twice.push(format!(
                    "{who}: {package} has [{}], in the tests [{}]",
                    list(sets),
                    list(wanted)
                ));
            }
        }
    }
    Ok(twice)
}

fn features(packages: &str) -> Result<Features, String> {
    let mut tree = cargo("tree --quiet --locked --prefix none --no-dedupe --format {p}|{f}");
    tree.args(packages.split_whitespace());
    Ok(parse(&output("cargo tree", tree)?))
}

/// Lines such as `rand v0.10.3 (proc-macro)|alloc,std`.
fn parse(tree: &str) -> Features {
    let mut found = Features::new();
    for (package, features) in tree.lines().filter_map(|line| line.split_once('|')) {
        let package = package.split(" (").next().unwrap_or(package);
        found.entry(package.to_string()).or_default().insert(features.to_string());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_parsed() {
        let found = parse("a v1.0.0 (proc-macro)|\nb v2.0.0|std\n\nb v2.0.0|alloc,std\n");
        assert_eq!(found["a v1.0.0"], BTreeSet::from([String::new()]));
        assert_eq!(found["b v2.0.0"].len(), 2);
    }
}
