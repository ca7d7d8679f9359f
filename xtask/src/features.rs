//! Checks that each dependency is built once. Cargo enables the features that the selected packages
//! need, so a dependency is built again if another selection of packages enables other features.

use crate::shell::{Outcome, cargo, output};
use std::collections::{BTreeMap, BTreeSet};

/// Selected packages, and whether the dependencies of their tests are built as well.
struct Choice {
    who: &'static str,
    packages: &'static str,
    dev: bool,
}

const TESTS: Choice = Choice { who: "tests", packages: "--workspace", dev: true };
/// Other builds in the same profile.
const OTHERS: [Choice; 3] = [
    Choice { who: "docs and binaries", packages: "--workspace", dev: false },
    Choice {
        who: "unit tests alone",
        packages: "--workspace --exclude nysketch-python",
        dev: true,
    },
    Choice { who: "the wheel", packages: "--package nysketch-python", dev: false },
];
/// Dependencies of our binaries, then all dependencies including those of build scripts. A
/// dependency in both lists may have two sets of features, and the first must not be confused with
/// the second.
const EDGES: [&str; 2] = ["normal,no-proc-macro", "normal,build"];

/// Sets of features of every dependency, by name and version.
type Features = BTreeMap<String, BTreeSet<String>>;

/// Fails if a dependency is built more than once.
pub fn check() -> Outcome {
    let twice = twice()?;
    if twice.is_empty() {
        Ok(())
    } else {
        Err(format!("built more than once:\n  {}", twice.join("\n  ")))
    }
}

/// Reports dependencies that are built more than once; the tests only take longer.
pub fn note() -> Outcome {
    for line in twice()? {
        eprintln!("   note: built again for {line}");
    }
    Ok(())
}

fn twice() -> Result<Vec<String>, String> {
    eprintln!("== features");
    let mut twice = BTreeSet::new();
    for edges in EDGES {
        let tests = features(&TESTS, edges)?;
        for choice in OTHERS {
            for (package, sets) in features(&choice, edges)? {
                // A dependency that the tests do not build is built once, too.
                let Some(wanted) = tests.get(&package) else {
                    continue;
                };
                if !sets.is_subset(wanted) {
                    let [here, there] =
                        [&sets, wanted].map(|s| Vec::from_iter(s.iter().cloned()).join("] or ["));
                    twice.insert(format!(
                        "{}: {package} has [{here}], for the tests [{there}]",
                        choice.who
                    ));
                }
            }
        }
    }
    Ok(twice.into_iter().collect())
}

fn features(choice: &Choice, edges: &str) -> Result<Features, String> {
    let mut tree = cargo("tree --quiet --locked --prefix none --no-dedupe --format {p}|{f}");
    tree.args(choice.packages.split_whitespace());
    tree.arg("--edges").arg(if choice.dev { format!("{edges},dev") } else { edges.to_string() });
    Ok(parse(&output("cargo tree", tree)?))
}

/// Parses lines such as `rand v0.10.3 (proc-macro)|alloc,std`.
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
