//! Forged files whose numbers overflow: each is refused, or every number that is shown is one.

mod common;

use common::Folder;
use nysketch::{Error, FormatError, Plan, PlanParams, Sketch, Sum, Sums, Table, plan_for};
use serde_json::{Value, json};
use std::sync::Arc;

/// A plan with other numbers in one of its tensors, and the checksum that belongs to them.
fn forged(plan: &Plan, tensor: &str, numbers: &[f64]) -> Vec<u8> {
    let mut bytes = plan.to_bytes();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let start = header[tensor]["data_offsets"][0].as_u64().unwrap() as usize;
    for (i, number) in numbers.iter().enumerate() {
        bytes[8 + length + start + 8 * i..][..8].copy_from_slice(&number.to_le_bytes());
    }
    let body = bytes.len() - 4;
    let checksum = crc32(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

fn plan() -> Plan {
    let values = (0..60).map(|i| 1.0 + f64::from(i * 37 % 23)).collect();
    let table = Table::unnamed(2, values).unwrap().with_weights(vec![1.5; 30]).unwrap();
    let params = PlanParams::default().landmarks(5).witnesses(0).log(["c1"]).weights("w", 0.5);
    plan_for(&table, params).unwrap().plan
}

/// Two cells of few rows, far from their landmarks.
fn sketch(plan: Plan) -> Sketch {
    let plan = Arc::new(plan);
    let mut sums = Sums::zero(&plan);
    let far = 1i128 << 43;
    for cell in 0..2 {
        sums[Sum::CellRows][cell] = 4;
        for k in 0..2 {
            // Three equal rows and one that is far away.
            sums[Sum::CellSum][cell * 2 + k] = far;
            sums[Sum::CellSquare][cell * 2 + k] = far * far;
        }
    }
    sums[Sum::Rows][0] = 8;
    for k in 0..2 {
        sums[Sum::Sum][k] = 2 * far;
        sums[Sum::Outer][k * (k + 3) / 2] = 2 * far * far;
    }
    Sketch::from_sums(plan, sums).unwrap()
}

/// Whether a text shows a number that is none.
fn shows_no_number(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.into_iter().any(|word| matches!(word, "inf" | "NaN" | "nan" | "Infinity"))
}

fn run(f: &Folder, line: &str) -> bool {
    let output = f.command(line).arg("--force").output().unwrap();
    let (out, err) = (&output.stdout, &output.stderr);
    let said = [out, err].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
    assert!(matches!(output.status.code(), Some(0..=2)), "{line}: {said}");
    assert!(!said.contains("panicked") && !shows_no_number(&said), "{line}: {said}");
    output.status.success()
}

#[test]
fn sums_of_extreme_plans_are_shown_as_numbers() {
    let f = Folder::new();
    let mut shown = 0;
    for (tensor, numbers) in [
        ("centre", vec![1e150, 1e3]),
        ("centre", vec![-1e150, -1e150]),
        ("scale", vec![1e100, 1e100]),
        ("scale", vec![1e-50, 1e100]),
        ("weight_unit", vec![1e50]),
        ("weight_unit", vec![1e-50]),
        ("bandwidths", vec![1e33, 1e32, 1e-30]),
    ] {
        let plan = Plan::from_bytes(&forged(&plan(), tensor, &numbers)).unwrap();
        f.write("p.nys", plan.to_bytes()).write("s.nys", sketch(plan).to_bytes());
        let lines = [
            "inspect p.nys",
            "inspect s.nys",
            "inspect s.nys --json",
            "diff s.nys s.nys --draws 19",
            "fit kmeans s.nys -k 2 -o m.json",
            "fit gmm s.nys -k 2 -o g.json",
            "fit pca s.nys -k 1 -o c.json",
            "report s.nys -o r.html --most-clusters 3",
        ];
        shown += lines.iter().filter(|line| run(&f, line)).count();
        for model in ["m.json", "g.json", "c.json"] {
            if f.path(model).exists() {
                run(&f, &format!("inspect {model}"));
                std::fs::remove_file(f.path(model)).unwrap();
            }
        }
    }
    // Not everything may be refused.
    assert!(shown > 28, "{shown}");
}

#[test]
fn numbers_that_overflow_are_refused() {
    for (tensor, number) in [
        ("centre", 1.1e150),
        ("centre", f64::MAX),
        ("centre", f64::INFINITY),
        ("scale", 1.1e100),
        ("scale", 0.9e-50),
        ("scale", f64::NAN),
        ("weight_unit", 1.1e50),
        ("weight_unit", 0.9e-50),
        ("weight_unit", f64::INFINITY),
    ] {
        let refused = Plan::from_bytes(&forged(&plan(), tensor, &[number])).unwrap_err();
        assert!(matches!(refused, Error::Format(FormatError::Value(_))), "{tensor}: {refused}");
    }
}

#[test]
fn numbers_of_models_are_shown_or_refused() {
    let f = Folder::new();
    f.write("s.nys", sketch(plan()).to_bytes());
    f.ok("fit gmm s.nys -k 2 -o g.json");
    let good: Value = serde_json::from_slice(&f.read("g.json")).unwrap();
    let likelihood = json!({"mean": 0.0, "low": -1.0, "high": 1.0, "entropy": 0.0});
    let mut tried = 0;
    for number in [1e308, -1e308, 1e200, 1e150, 1e100, 1e-308] {
        for place in [
            "/means/0/0",
            "/scale/0",
            "/profile/mean/0",
            "/profile/deviation/0",
            "/profile/spread/0/0",
        ] {
            let mut model = good.clone();
            let Some(value) = model.pointer_mut(place) else { continue };
            *value = json!(number);
            f.write("m.json", model.to_string());
            run(&f, "inspect m.json");
            run(&f, "inspect m.json --json");
            tried += 1;
        }
        for key in ["mean", "low", "high"] {
            let mut model = good.clone();
            model["report"]["likelihood"] = likelihood.clone();
            model["report"]["likelihood"][key] = json!(number);
            f.write("m.json", model.to_string());
            run(&f, "inspect m.json");
            tried += 1;
        }
    }
    assert!(tried >= 40, "{tried}");
}

#[test]
fn options_that_are_no_numbers_are_refused() {
    let f = Folder::new();
    f.write("s.nys", sketch(plan()).to_bytes());
    for tolerance in ["inf", "NaN", "-1"] {
        let line = format!("fit gmm s.nys -k 2 -o m.json --tolerance={tolerance}");
        f.fails(2, &line, &["--tolerance"]);
    }
    f.fails(2, "generate gmm --rows 5 --dims 65537 --clusters 2 -o x.csv", &["--dims", "65536"]);
    let line = "generate gmm --rows 5 --dims 65536 --clusters 1048576 -o x.csv";
    f.fails(2, line, &["--clusters", "1024"]);
}
