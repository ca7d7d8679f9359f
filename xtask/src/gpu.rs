//! Tests of the engine on a GPU, and on an emulated one.

use crate::shell::{Outcome, cargo, program, root, step, succeeds, target};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The test programs that run on a GPU, of the library and of the command.
const TESTS: &str = "test --workspace --exclude nysketch-python --locked --test device";

/// Runs the tests on the GPU of this machine: 1,000 random cases of up to 10⁸ operations each, and
/// ten large ones.
pub fn test() -> Outcome {
    let mut list = Command::new("nvidia-smi");
    list.arg("-L");
    if !succeeds(list) {
        eprintln!("== tests on a GPU: SKIPPED, nvidia-smi finds none; on an emulated one:");
        return emulated();
    }
    let mut tests = cargo(TESTS);
    tests.envs([("NYSKETCH_GPU", "1"), ("CASES", "1000"), ("WORK", "100000000"), ("LARGE", "1")]);
    step("tests on a GPU", tests)
}

/// Runs the tests on the emulated GPU of crates/nysketch-cuda/tests/emulator, which needs a C++
/// compiler.
pub fn emulated() -> Outcome {
    if !cfg!(target_os = "linux") || !program("c++", "--version", "g++") {
        eprintln!("== tests on an emulated GPU: SKIPPED, they need Linux and a C++ compiler");
        return Ok(());
    }
    let folder = build()?;
    // The second run starts with the last thread of a block, to reveal missing barriers.
    for (name, backwards) in [("tests on an emulated GPU", "0"), ("the same backwards", "1")] {
        let mut tests = cargo(TESTS);
        tests.env("NYSKETCH_GPU", "1").env("LD_LIBRARY_PATH", &folder);
        tests.env("EMULATED_BACKWARDS", backwards);
        // Kernels compiled for the emulator do not run on a GPU, so they have their own cache.
        tests.env("XDG_CACHE_HOME", folder.join("cache"));
        step(name, tests)?;
    }
    Ok(())
}

/// Returns when a file changed, if it exists.
fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// Builds the libraries of the emulated driver and compiler if their sources have changed, and
/// returns their folder.
fn build() -> Result<PathBuf, String> {
    let folder = target().join("emulator");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let source = root().join("crates/nysketch-cuda/tests/emulator");
    let newest = ["block.h", "device.h", "driver.cpp"].map(|name| changed(&source.join(name)));
    let libraries = ["libcuda.so.1", "libnvrtc.so.12"].map(|name| folder.join(name));
    if libraries.iter().all(|library| changed(library) > newest.into_iter().max().flatten()) {
        return Ok(folder);
    }
    // Kernels compiled for another version of the emulator do not run on this one.
    drop(std::fs::remove_dir_all(folder.join("cache")));
    for library in libraries {
        let mut compile = Command::new("c++");
        compile.args(["-O2", "-std=c++17", "-shared", "-fPIC", "-o"]).arg(&library);
        compile.arg(format!("-DDEVICE_H=\"{}\"", source.join("device.h").display()));
        compile.arg(source.join("driver.cpp")).arg("-ldl");
        step("an emulated GPU", compile)?;
    }
    Ok(folder)
}
