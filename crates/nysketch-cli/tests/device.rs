//! `--device`: a GPU gives the same bytes, and the error is clear if it cannot be used. Run by
//! `cargo xtask gpu`, on a GPU or on an emulated one with injected faults; skipped elsewhere.

mod common;

use common::Folder;
use nysketch_cuda::Device;
use predicates::str::contains;

fn has_device() -> bool {
    let found = Device::count() > 0;
    if !found {
        eprintln!("skipped: there is no GPU here");
    }
    found
}

/// Returns whether the GPU is emulated. Environment variables inject faults into the emulated one.
fn is_emulated() -> bool {
    let emulated = std::env::var_os("LD_LIBRARY_PATH")
        .is_some_and(|p| p.to_string_lossy().contains("emulator"));
    if !emulated {
        eprintln!("skipped: there is no emulated GPU here");
    }
    emulated && has_device()
}

fn folder() -> Folder {
    let f = Folder::new();
    f.ok("generate gmm --rows 3000 --dims 4 --clusters 5 -o rows.csv");
    f.ok("plan rows.csv -o plan.nys --landmarks 30");
    f
}

#[test]
fn a_gpu_gives_the_bytes_of_the_processors() {
    if !has_device() {
        return;
    }
    let f = folder();
    for (i, options) in ["", "--folds 4", "--threads 3"].iter().enumerate() {
        let line = |device: &str| {
            format!(
                "sketch rows.csv --plan plan.nys {options} --device {device} -o {device}{i}.nys"
            )
        };
        f.ok(&line("cpu"));
        f.ok(&line("cuda"));
        assert_eq!(f.read(&format!("cuda{i}.nys")), f.read(&format!("cpu{i}.nys")), "{options}");
    }
    f.ok("sketch rows.csv --plan plan.nys --device cuda:0 -o one.nys");
    assert_eq!(f.read("one.nys"), f.read("cpu0.nys"));
    f.ok("sketch rows.csv --plan plan.nys --device auto -o auto.nys");
    assert_eq!(f.read("auto.nys"), f.read("cpu0.nys"));
}

#[test]
fn what_is_no_device_is_refused() {
    let f = folder();
    f.fails(
        2,
        "sketch rows.csv --plan plan.nys --device gpu -o s.nys",
        &["auto, cpu, cuda or cuda:N"],
    );
    // The device is checked even if a GPU would have no work.
    let lines = [
        "sketch rows.csv --plan plan.nys -o s.nys",
        "plan rows.csv -o q.nys",
        "plan --private --bounds c0=-9..9,c1=-9..9 -o q.nys",
        "predict mixture.json rows.csv -o labels.csv",
    ];
    f.ok("sketch rows.csv --plan plan.nys -o rows.nys");
    f.ok("fit gmm rows.nys -k 2 -o mixture.json");
    for line in lines {
        let missing = if Device::count() == 0 { "--device cpu" } else { "no GPU 99" };
        f.fails(1, &format!("{line} --device cuda:99"), &[missing]);
    }
    for file in ["s.nys", "q.nys", "labels.csv"] {
        assert!(!f.path(file).exists(), "{file}");
    }
}

/// Each fault of a GPU gives an error with a message, and no file is written.
#[test]
fn faults_are_told_and_nothing_is_written() {
    if !is_emulated() {
        return;
    }
    let f = folder();
    let faults = [
        ("EMULATED_DEVICES", "0", "finds no GPU"),
        ("EMULATED_DRIVER", "11080", "too old: it supports CUDA 11.8"),
        ("EMULATED_MEMORY", "300000", "has no room for"),
        ("EMULATED_LOST_AFTER", "12", "LAUNCH_FAILED"),
    ];
    for (variable, value, words) in faults {
        let line = "sketch rows.csv --plan plan.nys --device cuda --threads 1 -o s.nys";
        let told = f.command(line).env(variable, value).assert().code(1).stdout("");
        told.stderr(contains(words)).stderr(contains("--device cpu"));
        assert!(!f.path("s.nys").exists(), "{variable}");
    }
    // Kernels with wrong arithmetic need their own cache.
    let mut wrong = f.command("sketch rows.csv --plan plan.nys --device cuda -o s.nys");
    let told =
        wrong.env("EMULATED_WRONG", "1").env("XDG_CACHE_HOME", f.path("cache")).assert().code(1);
    told.stderr(contains("cannot be trusted"));
    assert!(!f.path("s.nys").exists());
}

/// Of several GPUs, only the usable ones are used. Processors finish the planning of a lost GPU.
#[test]
fn other_gpus_and_processors_take_over() {
    if !is_emulated() {
        return;
    }
    let f = folder();
    let sketch = |device: &str| {
        let line = format!(
            "sketch rows.csv --plan plan.nys --device {device} --threads 2 -o s.nys --force"
        );
        let mut command = f.command(&line);
        command.env("EMULATED_DEVICES", "2").env("EMULATED_OLD", "0");
        command
    };
    f.ok("sketch rows.csv --plan plan.nys -o expected.nys");
    sketch("cuda").assert().success();
    assert_eq!(f.read("s.nys"), f.read("expected.nys"));
    sketch("cuda:0").assert().code(1).stderr(contains("compute capability 7.5"));

    // There are more rows than are sampled, so planning reads them a second time. It runs one
    // kernel of distances and one of ranks to test the GPU, and then for each block.
    let plan = |device: &str, file: &str| {
        let line = format!(
            "plan rows.csv --sample-rows 1000 --landmarks 30 --threads 1 --device {device} -o \
             {file}"
        );
        f.command(&line)
    };
    plan("cpu", "here.nys").assert().success();
    for launches in ["2", "3"] {
        let file = format!("{launches}.nys");
        let mut lost = plan("cuda", &file);
        let told = lost.env("EMULATED_LOST_AFTER", launches).assert().success();
        told.stderr(contains("LAUNCH_FAILED")).stderr(contains("processors of this machine"));
        assert_eq!(f.read(&file), f.read("here.nys"));
    }
}

/// If a GPU is lost during the pass, a checkpoint remains, from which the processors continue to
/// the same bytes.
#[test]
fn a_lost_gpu_leaves_its_checkpoint() {
    if !is_emulated() {
        return;
    }
    let f = folder();
    f.ok("generate gmm --rows 60000 --dims 4 --clusters 5 -o more.csv");
    let line = "sketch more.csv --plan plan.nys --checkpoint c.ckpt --checkpoint-every 0.000001 \
        --threads 1 -o s.nys";
    let mut lost = f.command(&format!("{line} --device cuda"));
    // The fault occurs after the self-test and the first rows, and before the last rows.
    let failed = lost.env("EMULATED_LOST_AFTER", "40").assert().code(1);
    failed.stderr(contains("LAUNCH_FAILED")).stderr(contains("--resume"));
    assert!(f.path("c.ckpt").exists());
    f.ok(&format!("{line} --device cpu --resume"));
    f.ok("sketch more.csv --plan plan.nys -o whole.nys");
    assert_eq!(f.read("s.nys"), f.read("whole.nys"));
}
