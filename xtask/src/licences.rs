//! Checks that every dependency has a licence compatible with MIT OR Apache-2.0.

use crate::shell::{Outcome, cargo, output};
use serde_json::Value;

/// Permissive licences that require no more than a notice.
const ALLOWED: [&str; 10] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "0BSD",
];

pub fn check() -> Outcome {
    eprintln!("== licences");
    let metadata = cargo("metadata --format-version 1 --locked --all-features");
    let metadata: Value = serde_json::from_str(&output("cargo metadata", metadata)?)
        .map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let refused: Vec<String> = packages.iter().filter_map(refusal).collect();
    if !refused.is_empty() {
        return Err(format!("licences that are not on the list:\n  {}", refused.join("\n  ")));
    }
    eprintln!("   {} packages, all permissive", packages.len());
    Ok(())
}

/// Returns the reason why a package is refused, if it is.
fn refusal(package: &Value) -> Option<String> {
    let name = package["name"].as_str().unwrap_or("?");
    let licence = package["license"].as_str().unwrap_or("");
    let allowed = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX)
        .is_ok_and(|e| e.evaluate(|r| r.license.id().is_some_and(|id| ALLOWED.contains(&id.name))));
    (!allowed).then(|| format!("{name}: '{licence}'"))
}
