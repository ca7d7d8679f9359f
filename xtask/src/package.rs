//! Checks that the crates can be published: the manifests are complete and every file can be
//! packed.

use crate::shell::{Outcome, cargo, output, step};
use serde_json::Value;

/// Packs the published crates; with `verify`, builds each from its package.
pub fn check(verify: bool) -> Outcome {
    let metadata =
        output("cargo metadata", cargo("metadata --format-version 1 --no-deps --locked"))?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let published: Vec<&Value> = packages.iter().filter(|p| p["publish"].is_null()).collect();
    let missing: Vec<String> = published.iter().flat_map(|p| gaps(p, packages)).collect();
    if !missing.is_empty() {
        return Err(format!("not ready to be published:\n  {}", missing.join("\n  ")));
    }
    // The working tree may have changes: this is a check, not a release.
    let mut pack = cargo("package --quiet --locked --allow-dirty");
    pack.args((!verify).then_some("--no-verify"));
    for package in published {
        pack.args(["--package", package["name"].as_str().unwrap_or_default()]);
    }
    step("packages", pack)
}

/// Returns the fields missing from a manifest.
fn gaps(package: &Value, all: &[Value]) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or("?");
    let fields = [
        "description",
        "license",
        "repository",
        "readme",
        "keywords",
        "categories",
        "rust_version",
    ];
    let empty = fields.iter().filter(|field| is_empty(&package[**field]));
    let mut gaps: Vec<String> = empty.map(|field| format!("{name} has no {field}")).collect();
    let versions = all.iter().map(|p| (&p["name"], p["version"].as_str().unwrap_or_default()));
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let Some((other, version)) =
            versions.clone().find(|(other, _)| **other == dependency["name"])
        else {
            continue;
        };
        // Cargo leaves out dependencies of tests that have a path and no version.
        let is_left_out = dependency["kind"] == "dev" && dependency["req"] == "*";
        if !is_left_out && dependency["req"] != format!("^{version}") {
            gaps.push(format!("{name} needs {other} {}, not {version}", dependency["req"]));
        }
    }
    gaps
}

fn is_empty(field: &Value) -> bool {
    match field {
        Value::Array(list) => list.is_empty(),
        value => value.is_null(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn gaps_are_named() {
        let full = json!({
            "name": "a", "version": "0.2.0", "description": "d", "license": "MIT",
            "repository": "r", "readme": "README.md", "keywords": ["k"],
            "categories": ["c"], "rust_version": "1.89",
            "dependencies": [{ "name": "serde", "req": "^1" }],
        });
        let mut incomplete = full.clone();
        incomplete["keywords"] = json!([]);
        incomplete["readme"] = Value::Null;
        incomplete["name"] = json!("b");
        incomplete["dependencies"] = json!([{ "name": "a", "req": "*" }]);
        let all = [full.clone(), incomplete.clone()];
        assert!(gaps(&full, &all).is_empty());
        let expected = ["b has no readme", "b has no keywords", "b needs \"a\" \"*\", not 0.2.0"];
        assert_eq!(gaps(&incomplete, &all), expected);
    }
}
