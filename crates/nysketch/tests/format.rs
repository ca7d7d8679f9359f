//! Files: golden files of every version, damaged files and hostile files.

mod common;

use common::*;
use nysketch::format::decode;
use nysketch::planning::{DatePart, Missing};
use nysketch::privacy::{Budget, Release};
use nysketch::rows::{CategoryColumn, Invalid, RowSet, RowStream};
use nysketch::{
    Collect, EngineKind, Error, FeatureKind, FoldRule, FormatError, Kernel, People, Plan,
    PlanParams, PrivateParams, Result, RowSource, Sampling, Scale, Sketch, SketchParams, Sum,
    Table, plan_for,
};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Returns the rows of the golden files: values that any language can compute exactly.
fn golden_rows() -> Table {
    let value = |i: u32, j: u32| {
        f64::from((i * i * (j + 3) + 7 * i + 11 * j) % 101) / 8.0 + f64::from(j) * 100.0
    };
    let values = (0..300).flat_map(|i| (0..3).map(move |j| value(i, j))).collect();
    let columns = ["height", "width", "βάρος"].map(String::from).to_vec();
    Table::new(columns, values).unwrap()
}

fn golden_weights() -> Vec<f64> {
    (0..300).map(|i| f64::from(i % 4) * 0.5).collect()
}

/// A table whose last numeric column is a point in time.
struct Dated(Table);

impl RowSource for Dated {
    fn columns(&self) -> &[String] {
        self.0.columns()
    }

    fn is_time(&self, column: usize) -> bool {
        column + 1 == self.columns().len()
    }

    fn categories(&self) -> &[CategoryColumn] {
        self.0.categories()
    }

    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        self.0.open(done)
    }
}

/// Returns categories, a logarithm and points in time, some before 1970. `later` rows have levels
/// that are not in the plan.
fn mixed_rows(later: bool) -> Dated {
    let values = |i: i64| {
        let height = (3 * i * i + 7 * i) % 101;
        let amount = ((5 * i * i + 11 * i) % 97).pow(3) - 4000;
        [height as f64 / 8.0, amount as f64 / 4.0, (2_469_135 * i - 80_000_000) as f64 / 2.0]
    };
    let columns = ["height", "amount", "when"].map(String::from).to_vec();
    let table = Table::new(columns, (0..300).flat_map(values).collect()).unwrap();
    let city = |i: usize| match (i % 13, i * i % 7) {
        (4, _) => None,
        (5, _) if later => Some("Ωmega"),
        (_, 0 | 1) => Some("Oslo"),
        (_, 2) => Some("New \"York\""),
        _ => Some(""),
    };
    let kind = |i: usize| Some(if later && i % 31 == 8 { "new" } else { ["a", "b"][i / 2 % 2] });
    let texts =
        |text: &dyn Fn(usize) -> Option<&'static str>| (0..300).map(text).collect::<Vec<_>>();
    let table = table.with_category("city", &texts(&city)).unwrap();
    let table = table.with_category("kind", &texts(&kind)).unwrap();
    Dated(table.with_weights(golden_weights()).unwrap())
}

/// Returns numbers, a vector and a category with missing values; some rows have almost no values,
/// and some vectors have no direction.
fn holed_rows() -> Table {
    let lacks_most = |i: u32| i % 37 == 3;
    let value = |i: u32, j: u32| match j {
        1.. if lacks_most(i) || (3 * i + 5 * j * i + j).is_multiple_of(8) => f64::NAN,
        3 => f64::from(2 * i % 7) - 3.0 + f64::from(i % 4) / 4.0,
        4 => f64::from((i * i + 6) % 7) - 3.0,
        _ => f64::from((i * i * (j + 3) + 7 * i + 11 * j) % 101) / 8.0 + f64::from(j) * 100.0,
    };
    let columns = ["x", "y", "z", "v[0]", "v[1]"].map(String::from).to_vec();
    let values = (0..300).flat_map(|i| (0..5).map(move |j| value(i, j))).collect();
    let texts: Vec<Option<&str>> = (0..300)
        .map(|i| (i % 6 != 0 && !lacks_most(i)).then(|| ["p", "q", "r"][i as usize % 5 / 2]))
        .collect();
    Table::new(columns, values).unwrap().with_category("group", &texts).unwrap()
}

/// Returns parameters with frequencies of adapted radius.
fn adapted(frequencies: usize) -> PlanParams {
    let mut params = PlanParams::default().fourier(frequencies);
    params.features = FeatureKind::AdaptedFourier;
    params
}

/// The source of the rows of a golden sketch.
type Source = Box<dyn RowSource>;

/// Returns the name, the rows and the plan parameters of each golden sketch.
fn golden_cases() -> Vec<(&'static str, Source, PlanParams)> {
    let plain = || -> Source { Box::new(golden_rows()) };
    let weighted = || -> Source { Box::new(golden_rows().with_weights(golden_weights()).unwrap()) };
    vec![
        (
            "v1/nystrom",
            plain(),
            nystrom(Some(16), Sampling::Uniform).bandwidths([256.0, 64.0, 10.0]).seed(11),
        ),
        (
            "v1/weighted",
            weighted(),
            nystrom(Some(5), Sampling::Uniform)
                .weights("w", 0.5)
                .scale(Scale::Standard)
                // One squaring, two, a restart after four, one again.
                .bandwidths([4.0, 2.0, 0.5, 0.125, 0.0625])
                .seed(11),
        ),
        ("v1/fourier", plain(), PlanParams::default().fourier(7).seed(11)),
        ("v2/adapted", plain(), adapted(7).seed(11)),
        (
            "v2/laplace",
            weighted(),
            nystrom(Some(7), Sampling::Uniform)
                .kernel(Kernel::Laplace)
                .weights("w", 0.5)
                // One squaring, two, a fresh exponential.
                .bandwidths([400.0, 100.0, 6.25, 2.0])
                .seed(11),
        ),
        (
            "v2/witnesses",
            weighted(),
            nystrom(Some(6), Sampling::Uniform)
                .witnesses(12)
                .weights("w", 0.5)
                .scale(Scale::Standard)
                .bandwidths([4.0, 1.0])
                .seed(11),
        ),
        // Every row is retained, with its weight.
        (
            "v2/counted",
            weighted(),
            nystrom(Some(4), Sampling::Dsquared).weights("w", 0.5).bandwidths([1.0]).seed(12),
        ),
        // With folds, the sketch of a plan of version 1 has version 2.
        ("v2/folded", plain(), nystrom(Some(5), Sampling::Uniform).bandwidths([64.0]).seed(14)),
        (
            "v2/keyed",
            Box::new(golden_rows().with_keys(golden_keys()).unwrap()),
            nystrom(Some(4), Sampling::Uniform).witnesses(12).bandwidths([64.0]).seed(15),
        ),
        (
            "v3/mixed",
            Box::new(mixed_rows(true)),
            nystrom(Some(9), Sampling::Uniform)
                .log(["amount"])
                .dates("when", [DatePart::Time, DatePart::Hour, DatePart::Weekday, DatePart::Month])
                .column_weight("kind", 0.3)
                .witnesses(20)
                .weights("w", 0.5)
                .scale(Scale::Standard)
                .bandwidths([8.0, 4.0, 1.0])
                .seed(11),
        ),
        (
            "v3/holes",
            Box::new(holed_rows()),
            nystrom(Some(8), Sampling::Uniform)
                .unit(["v"])
                .missing(Missing::Partial)
                .invalid(Invalid::Skip)
                .witnesses(30)
                .scale(Scale::Standard)
                .bandwidths([4.0, 1.0])
                .seed(13),
        ),
        // Bounds that some rows exceed, and a radius that many exceed.
        (
            "v4/private",
            plain(),
            nystrom(Some(6), Sampling::Uniform)
                .collect(Collect { kernel: true, cells: true, moments: true })
                .bandwidths([64.0, 16.0, 5.0])
                .private(golden_bounds(None))
                .seed(16),
        ),
        (
            "v4/people",
            Box::new(golden_rows().with_keys(golden_keys()).unwrap()),
            nystrom(Some(5), Sampling::Uniform)
                .bandwidths([64.0])
                .private(golden_bounds(People::new("user", 4).ok()))
                .seed(17),
        ),
    ]
}

fn golden_bounds(people: Option<People>) -> PrivateParams {
    let bounds = [("height", 1.0, 9.5), ("width", 101.0, 112.0), ("βάρος", 200.0, 215.0)];
    let mut private = PrivateParams::new(bounds.map(|(name, low, high)| (name.into(), low, high)));
    private.radius = Some(3.0);
    private.people = people;
    private
}

/// A release was drawn once and stays readable, and so does a masked sketch.
#[test]
fn golden_releases() {
    let sketch =
        || Sketch::from_bytes(&std::fs::read(golden("v4/private.sketch.nys")).unwrap()).unwrap();
    let path = golden("v4/release.nys");
    if std::env::var_os("NYSKETCH_WRITE_GOLDEN").is_some() && !path.exists() {
        let budget = Budget::new(3.0, 1e-6).unwrap();
        std::fs::write(&path, Release::of(&sketch(), budget, &[]).unwrap().to_bytes()).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    let release = Release::from_bytes(&bytes).unwrap();
    assert_eq!(release.to_bytes(), bytes);
    assert_eq!(release.spendings().len(), 6);
}

/// Returns the user of each golden row; some rows have none.
fn golden_keys() -> impl Iterator<Item = Option<String>> {
    (0..300).map(|i| (i % 11 != 7).then(|| format!("user {}", i * i % 23)))
}

/// Returns the rule that assigns the rows of a golden sketch to folds, if there is one.
fn golden_folds(name: &str) -> Option<FoldRule> {
    match name {
        "v2/folded" => FoldRule::by_content(5).ok(),
        "v2/keyed" => FoldRule::by_key(4, "user").ok(),
        _ => None,
    }
}

/// Returns the rows from which a golden plan was made, if they differ from those of its sketch.
fn planned_rows(name: &str) -> Option<Source> {
    (name == "v3/mixed").then(|| -> Source { Box::new(mixed_rows(false)) })
}

/// The files of every version stay readable, and sketching the same rows with the same plan always
/// gives the same bytes. With NYSKETCH_WRITE_GOLDEN set, missing files are written; existing ones
/// are never overwritten.
#[test]
fn golden_files() {
    for (name, rows, params) in golden_cases() {
        let of = |plan: &Arc<Plan>, engine| {
            let params = SketchParams::default().engine(engine).threads(3).invalid(Invalid::Skip);
            let sketch = match golden_folds(name) {
                None => Sketch::of(plan, rows.as_ref(), params, &()),
                Some(rule) => Sketch::of_folds(plan, &rule, rows.as_ref(), params, &()),
            };
            sketch.unwrap().to_bytes()
        };
        let (plan_path, sketch_path) =
            (golden(&format!("{name}.plan.nys")), golden(&format!("{name}.sketch.nys")));
        if std::env::var_os("NYSKETCH_WRITE_GOLDEN").is_some() && !plan_path.exists() {
            std::fs::create_dir_all(plan_path.parent().unwrap()).unwrap();
            let planned = planned_rows(name);
            let planned = planned.as_deref().unwrap_or(rows.as_ref());
            let plan = Arc::new(plan_for(planned, params).unwrap().plan);
            std::fs::write(&plan_path, plan.to_bytes()).unwrap();
            std::fs::write(&sketch_path, of(&plan, EngineKind::Scalar)).unwrap();
        }
        let plan = Arc::new(Plan::from_bytes(&std::fs::read(&plan_path).unwrap()).unwrap());
        let bytes = std::fs::read(&sketch_path).unwrap();
        assert_eq!(Sketch::from_bytes(&bytes).unwrap().to_bytes(), bytes, "{name}");
        for engine in [EngineKind::Cpu, EngineKind::Scalar] {
            assert_eq!(of(&plan, engine), bytes, "{name} with {engine:?}");
        }
    }
}

fn golden_bytes() -> Vec<u8> {
    std::fs::read(golden("v1/nystrom.sketch.nys")).unwrap()
}

fn with_witnesses() -> Vec<u8> {
    std::fs::read(golden("v2/witnesses.sketch.nys")).unwrap()
}

fn with_categories() -> Vec<u8> {
    std::fs::read(golden("v3/mixed.sketch.nys")).unwrap()
}

fn with_holes() -> Vec<u8> {
    std::fs::read(golden("v3/holes.sketch.nys")).unwrap()
}

fn with_noise() -> Vec<u8> {
    std::fs::read(golden("v4/release.nys")).unwrap()
}

fn with_folds() -> Vec<u8> {
    std::fs::read(golden("v2/keyed.sketch.nys")).unwrap()
}

/// An error names each broken rule of folds, and folds cannot be removed.
#[test]
fn each_broken_rule_of_folds_is_named() {
    let broken = |change: &dyn Fn(&mut String, &mut Tensors)| refusal(&edit(&with_folds(), change));
    let says = |refused: FormatError, words: &str| {
        assert!(refused.to_string().contains(words), "{refused}, not {words}");
    };
    for rule in ["1 key user", "65 key user", "4", "4 keys user", "content", "4 content user"] {
        let refused = broken(&|json, _| *json = json.replace("4 key user", rule));
        says(refused, &format!("the section 'folds' contains '{rule}'"));
    }
    says(broken(&|json, _| *json = json.replace("4 key user", "4 content")), "not belong there");
    says(broken(&|json, _| *json = json.replace("4 key user", "5 key user")), "should be U64 [4");
    says(broken(&|_, tensors| drop(tensors.remove("folds.rows"))), "'folds.rows' is missing");
    says(broken(&|_, tensors| put(tensors, "folds.rows", 1, 0)), "in fold 1,");
    // Any excess in this fold is missing from the last one.
    says(broken(&|_, tensors| put(tensors, "folds.rows", 2, 10_000)), "in fold 2,");
    says(broken(&|_, tensors| put(tensors, "folds.skipped", 0, 9)), "in fold 3, the number of");
    // A negative number of rows, and a negative sum.
    says(broken(&|_, tensors| put(tensors, "folds.witnesses", 0, -1)), "the folds of witness 0");
    let unknown = broken(&|json, _| *json = json.replace("\"folds\":", "\"found\":"));
    says(unknown, "a section 'found' that this program does not know");
}

/// An error names each broken rule of private plans and releases: no file can claim less noise than
/// its plan requires.
#[test]
fn each_broken_rule_of_releases_is_named() {
    let broken = |change: &dyn Fn(&mut String, &mut Tensors)| refusal(&edit(&with_noise(), change));
    let says = |refused: FormatError, words: &str| {
        assert!(refused.to_string().contains(words), "{refused}, not {words}");
    };
    let replaced = |from: &str, to: &str| {
        broken(&|json, _| {
            assert!(json.contains(from), "{json}");
            *json = json.replacen(from, to, 1);
        })
    };
    says(replaced("\"epsilon\":\"3\"", "\"epsilon\":\"1\""), "within its ε and δ");
    says(replaced("\"epsilon\":\"3\"", "\"epsilon\":\"x\""), "ε and δ are numbers");
    says(replaced("\"epsilon\":\"3\"", "\"epsilon\":\"21\""), "between 0.0001 and 20");
    says(replaced("\"delta\":\"0.000001\"", "\"delta\":\"0\""), "`delta`");
    says(replaced("\"name\":\"counts\"", "\"name\":\"rows\""), "the mechanisms of its plan");
    says(replaced("\"name\":\"counts\"", "\"name\":\"count\""), "counts");
    says(replaced("one row added", "nothing added"), "canonical");
    says(replaced("/65536\"}", "/65535\"}"), "canonical");
    says(replaced("\"release\":{", "\"release\":{\"person_rows\":3,"), "person");
    says(replaced("\"spent\":0", "\"spent\":72057594037927936"), "fingerprint");
    // Numbers that no noise would produce can be read, and learned from, without a panic.
    for value in [i128::MAX >> 8, i128::MIN >> 8] {
        for name in ["counts", "sums", "squares", "kernel", "totals", "products"] {
            let file = edit(&with_noise(), |_, tensors| {
                (0..3).for_each(|at| put(tensors, &format!("noisy.{name}"), at, value));
            });
            let release = Release::from_bytes(&file).unwrap();
            let _ = (release.rows(), release.estimate(), release.like_its_rows(10, 0));
        }
    }
    says(broken(&|_, tensors| drop(tensors.remove("noisy.sums"))), "'noisy.sums' is missing");
    says(
        broken(&|_, tensors| put(tensors, "noisy.counts", 1, i128::MAX >> 1)),
        "the sums of its plan",
    );
    // Fields that a private plan must not have.
    let plan = std::fs::read(golden("v4/private.plan.nys")).unwrap();
    let broken = |change: &dyn Fn(&mut String, &mut Tensors)| refusal(&edit(&plan, change));
    says(
        broken(&|json, _| *json = json.replace("\"radius\":", "\"radius\":999999999")),
        "`radius`",
    );
    says(broken(&|json, _| *json = json.replace("\"format\":4", "\"format\":3")), "private");
    says(broken(&|_, tensors| drop(tensors.remove("low"))), "'low' is missing");
    says(
        broken(&|_, tensors| tensors.get_mut("low").unwrap().2 = vec![255; 24]),
        "'low' holds a value that is not finite",
    );
    let ends = |tensors: &mut Tensors| tensors["high"].clone();
    says(broken(&|_, tensors| *tensors.get_mut("low").unwrap() = ends(tensors)), "`bounds`");
    says(
        broken(&|_, tensors| tensors.get_mut("exponent").unwrap().2[0] ^= 1),
        "one unit for all columns",
    );
}

type Tensors = HashMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

/// Returns a golden sketch after `change`.
fn edited(change: impl FnOnce(&mut String, &mut Tensors)) -> Vec<u8> {
    edit(&golden_bytes(), change)
}

/// Takes a file apart, lets `change` edit it, and reassembles it with a valid checksum.
fn edit(bytes: &[u8], change: impl FnOnce(&mut String, &mut Tensors)) -> Vec<u8> {
    let file = SafeTensors::deserialize(bytes).unwrap();
    let (_, header) = SafeTensors::read_metadata(bytes).unwrap();
    let mut json = header.metadata().as_ref().unwrap()["nysketch"].clone();
    let mut tensors: Tensors = file
        .iter()
        .map(|(n, t)| (n.to_string(), (t.dtype(), t.shape().to_vec(), t.data().to_vec())))
        .collect();
    change(&mut json, &mut tensors);
    let views = tensors
        .iter()
        .map(|(n, (t, s, b))| (n.as_str(), TensorView::new(*t, s.clone(), b).unwrap()));
    let info = HashMap::from([("nysketch".to_string(), json)]);
    with_checksum(safetensors::serialize(views, Some(info)).unwrap())
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - 4;
    let crc = crc32fast::hash(&bytes[..body]);
    bytes[body..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn refusal(bytes: &[u8]) -> FormatError {
    match decode(bytes) {
        Err(Error::Format(error)) => error,
        other => panic!("expected a format error, got {other:?}"),
    }
}

#[test]
fn unedited_files_come_back_the_same() {
    assert_eq!(edited(|_, _| {}), golden_bytes());
}

#[test]
fn every_truncation_and_every_flipped_byte_is_refused() {
    for bytes in [golden_bytes(), with_witnesses(), with_holes(), with_noise()] {
        for length in 0..bytes.len() {
            refusal(&bytes[..length]);
        }
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 1 << (i % 8);
            refusal(&damaged);
        }
        refusal(&[bytes.as_slice(), b"x"].concat());
    }
}

/// A file without the retained rows belongs to the same plan; other retained rows are refused.
#[test]
fn witness_rows_may_be_left_out_but_not_be_others() {
    use FormatError::*;
    let bytes = with_witnesses();
    let whole = Sketch::from_bytes(&bytes).unwrap();
    let digest = whole.plan().witnesses.as_ref().unwrap().digest().to_string();
    let name = "witnesses.rows";
    let light = edit(&bytes, |_, t| drop(t.remove(name)));
    assert_eq!(whole.clone().without_witnesses().to_bytes(), light);
    let light = Sketch::from_bytes(&light).unwrap();
    assert_eq!((&light, light.digest()), (&whole, whole.digest()));
    assert_eq!(light.plan().fingerprint(), whole.plan().fingerprint());
    assert_eq!(light.with_witnesses_of(whole.plan()).unwrap().to_bytes(), bytes);

    let edited = |change: &dyn Fn(&mut String, &mut Tensors)| refusal(&edit(&bytes, change));
    assert!(matches!(edited(&|_, t| t.get_mut(name).unwrap().2[0] ^= 1), SectionDigest { .. }));
    assert!(matches!(
        edited(&|j, _| *j = j.replace(&digest, &"0".repeat(64))),
        SectionDigest { .. }
    ));
    for bad in [digest.to_uppercase(), digest[1..].to_string(), String::new()] {
        assert!(matches!(edited(&|j, _| *j = j.replace(&digest, &bad)), Value(_)), "{bad}");
    }
    let section = format!("\"witnesses\":\"{digest}\"");
    assert!(matches!(
        edited(&|j, _| *j = j.replace(&section, "")),
        Fingerprint { .. } | UnexpectedTensor(_)
    ));
    let others = format!("{section},\"zeal\":\"{digest}\"");
    assert!(
        matches!(edited(&|j, _| *j = j.replace(&section, &others)), Section(name) if name == "zeal")
    );
    assert!(matches!(
        edited(&|j, _| *j = j.replace("\"cells\",\"kernel\"", "\"kernel\"")),
        Value(_)
    ));
    assert!(matches!(
        edited(&|_, t| drop(t.insert(name.into(), (Dtype::F32, vec![4, 9], vec![0; 144])))),
        Shape { .. }
    ));
    // Invalid rows with a matching digest: no rows, and values that are not finite.
    let of_rows = |rows: &[f32]| {
        let data: Vec<u8> = rows.iter().flat_map(|x| x.to_le_bytes()).collect();
        let found = match edited(&|_, t| {
            drop(t.insert(name.into(), (Dtype::F32, vec![rows.len() / 3, 3], data.clone())))
        }) {
            SectionDigest { expected, .. } => expected,
            other => panic!("{other:?}"),
        };
        edited(&|j, t| {
            *j = j.replace(&digest, &found);
            t.insert(name.into(), (Dtype::F32, vec![rows.len() / 3, 3], data.clone()));
        })
    };
    for bad in [&[][..], &[f32::NAN, 0.0, 0.0], &[0.0, f32::INFINITY, 0.0], &[0.0, 0.0, 1e30]] {
        assert!(matches!(of_rows(bad), Value(_)), "{bad:?}");
    }
    assert!(matches!(of_rows(&[0.0; 3]), Fingerprint { .. }), "another plan");
}

#[test]
fn each_broken_rule_is_named() {
    use FormatError::*;
    let f64s = |v: &[f64]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    assert!(matches!(refusal(b"hello, world"), Container(_)));
    assert!(matches!(
        refusal(&edited(|j, _| *j = j.replace("\"format\":1", "\"format\":5"))),
        Version { .. }
    ));
    assert!(matches!(refusal(&edited(|j, _| *j = j.replace("\"format\":1,", ""))), Metadata(_)));
    assert!(matches!(
        refusal(&edited(|j, _| *j = j.replace("\"seed\":11", "\"seed\":11,\"time\":3"))),
        Metadata(_)
    ));
    assert!(matches!(
        refusal(&edited(|j, _| *j = j.replace("\"seed\":11", "\"seed\": 11"))),
        NotCanonical
    ));
    assert!(matches!(refusal(&edited(|j, _| *j = "[".repeat(100_000))), Metadata(_)));
    assert!(matches!(
        refusal(&edited(|j, _| *j = j.replace("\"kind\":\"sketch\"", "\"kind\":\"model\""))),
        Kind { .. }
    ));
    assert!(matches!(
        refusal(&edited(|j, _| *j = j.replace("\"kind\":\"sketch\"", "\"kind\":\"plan\""))),
        UnexpectedTensor(_)
    ));
    assert!(matches!(refusal(&edited(|j, _| *j = j.replace("width", "height"))), Value(_)));
    assert!(matches!(
        refusal(&edited(|j, _| *j = j.replace("width", "depth"))),
        Fingerprint { .. }
    ));
    assert!(matches!(refusal(&edited(|j, _| *j = j.replace("uniform", "psychic"))), Value(_)));
    assert!(matches!(
        refusal(&edited(|j, _| *j = j.replace("nystrom", "fourier"))),
        MissingTensor(_)
    ));
    assert!(matches!(refusal(&edited(|_, t| drop(t.remove("scale")))), MissingTensor(_)));
    assert!(matches!(
        refusal(&edited(|_, t| drop(t.insert("extra".into(), (Dtype::U8, vec![1], vec![0]))))),
        UnexpectedTensor(_) | Checksum { .. }
    ));
    assert!(matches!(
        refusal(&edited(|_, t| t.get_mut("cell_sum").unwrap().1 = vec![3, 16, 2])),
        Shape { .. }
    ));
    assert!(matches!(
        refusal(&edited(|_, t| t.get_mut("rows").unwrap().0 = Dtype::I64)),
        Shape { .. }
    ));
    for bad in [
        [f64::NAN, 64.0, 10.0],
        [256.0, 64.0, -10.0],
        [64.0, 256.0, 10.0],
        [0.0; 3],
        [f64::INFINITY, 64.0, 10.0],
    ] {
        assert!(
            matches!(
                refusal(&edited(|_, t| t.get_mut("bandwidths").unwrap().2 = f64s(&bad))),
                Value(_)
            ),
            "{bad:?}"
        );
    }
    for bad in [0.0, -1.0, f64::NAN, 1e-320, f64::MAX] {
        assert!(
            matches!(
                refusal(&edited(|_, t| t.get_mut("scale").unwrap().2 = f64s(&[1.0, bad, 1.0]))),
                Value(_)
            ),
            "{bad}"
        );
    }
    for bad in [i32::MIN, -1000, 11, i32::MAX] {
        let bytes = [bad, 0, 0].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        assert!(matches!(
            refusal(&edited(|_, t| t.get_mut("exponent").unwrap().2 = bytes)),
            Value(_)
        ));
    }
    for bad in [f32::NAN, f32::INFINITY, 1e30] {
        assert!(matches!(
            refusal(&edited(
                |_, t| t.get_mut("landmarks").unwrap().2[..4].copy_from_slice(&bad.to_le_bytes())
            )),
            Value(_)
        ));
    }
    // Sums that no rows have: a negative or huge count, a kernel sum above the count, a negative
    // square, inconsistent cells.
    for (name, value) in [
        ("rows", -1i128),
        ("rows", 1 << 40),
        ("skipped", -1),
        ("features", -1),
        ("features", 1 << 60),
        ("cell_rows", 0),
        ("cell_square", -1),
        // Less than the Cauchy-Schwarz inequality allows, an odd sum of even squares, differing
        // totals.
        ("cell_square", 0),
        ("cell_sum", 1),
        ("sum", 2),
        ("outer", -1),
        ("coverage", i128::MAX),
        ("cell_sum", i128::MIN),
    ] {
        let broken =
            edited(|_, t| t.get_mut(name).unwrap().2[..16].copy_from_slice(&value.to_le_bytes()));
        assert!(matches!(refusal(&broken), Value(_)), "{name} {value}");
    }
}

type Change<'a> = &'a dyn Fn(&mut String, &mut Tensors);

/// Writes an integer into a sum.
fn put(tensors: &mut Tensors, sum: &str, at: usize, value: i128) {
    let bytes = &mut tensors.get_mut(sum).unwrap().2;
    bytes[16 * at..16 * (at + 1)].copy_from_slice(&value.to_le_bytes());
}

/// Returns the error message for a file.
fn words(bytes: &[u8]) -> String {
    refusal(bytes).to_string()
}

/// Names, levels, steps, vectors and missing values of version 3.
#[test]
fn each_broken_rule_of_recipes_is_named() {
    let plan = |name: &str| std::fs::read(golden(&format!("v3/{name}.plan.nys"))).unwrap();
    let (mixed, holes) = (plan("mixed"), plan("holes"));
    let replaced = |file: &[u8], from: &str, to: &str| {
        words(&edit(file, |j, _| {
            assert!(j.contains(from), "{from}");
            *j = j.replace(from, to);
        }))
    };
    let many = (0..1001).map(|i| format!("\"{i}\"")).collect::<Vec<_>>().join(",");
    let long = format!("\"{}\"", "x".repeat(1025));
    let all_steps = &golden_json(&holes)["steps"].to_string();
    for (file, from, to, expected) in [
        (&mixed, "\"a\",\"b\"", "\"a\",\"a\"", "names and levels that are all different"),
        (&mixed, "\"kind\"}", "\"height\"}", "names and levels that are all different"),
        (&mixed, "\"kind\"}", "\"city\"}", "different names"),
        (&mixed, "\"a\",\"b\"", &many, "at most 1000 levels"),
        (&mixed, "\"Oslo\"", &long, "at most 1024 bytes"),
        (&mixed, "\"Oslo\",\"\",", "", "a level in each category"),
        (&mixed, "\"step\":\"log\"", "\"step\":\"ln\"", "got ln"),
        (&mixed, "{\"input\":\"amount\",\"step\":\"log\"},", "", "one step for each column"),
        (&mixed, "\"format\":3", "\"format\":2", "from version 3 on"),
        (&mixed, ",\"units\":[]", "", "from version 3 on"),
        (&mixed, "gaussian", "laplace", "landmarks and the Gaussian kernel"),
        (&mixed, "\"name\":\"kind\"", "\"name\":\"kind\",\"weight\":2", "unknown field `weight`"),
        (&holes, "\"cells\",\"kernel\"", "\"kernel\"", "cells if values may be missing"),
        (&holes, "\"least_present\":2", "\"least_present\":0", "between 1 and all"),
        (&holes, "\"least_present\":2", "\"least_present\":7", "between 1 and all"),
        (&holes, "\"least_present\":2", "\"least_present\":-1", "-1"),
        (&holes, "\"least_present\":2,", "", "finite values"),
        (&holes, "\"least_present\":2", "\"least_present\":null", "finite values"),
        (&holes, "[[3,5]]", "[[5,3]]", "columns that follow one another"),
        (&holes, "[[3,5]]", "[[3,3]]", "columns that follow one another"),
        (&holes, "[[3,5]]", "[[3,6]]", "columns that follow one another"),
        (&holes, "[[3,5]]", "[[3,5],[0,2]]", "columns that follow one another"),
        (&holes, "[[3,5]]", "[[0,4],[3,5]]", "columns that follow one another"),
        (&holes, "[[3,5]]", "[[3,5,6]]", "the metadata is not valid"),
        (&holes, all_steps, "[]", "one step for each column"),
    ] {
        let found = replaced(file, from, to);
        assert!(found.contains(expected), "{from} {to}: {found}");
    }
    // A file of version 3 must not contain a plan that version 1 can represent.
    let plain = plan("../v1/nystrom");
    let steps =
        ["height", "width", "βάρος"].map(|c| format!("{{\"input\":\"{c}\",\"step\":\"none\"}}"));
    let upgraded = edit(&plain, |j, _| {
        *j = j
            .replace("{\"collect\"", "{\"categories\":[],\"collect\"")
            .replace("\"format\":1", "\"format\":3,\"kernel\":\"gaussian\"")
            .replace("\"seed\"", "\"sections\":{},\"seed\"")
            .replace(
                ",\"weights\"",
                &format!(",\"steps\":[{}],\"units\":[],\"weights\"", steps.join(",")),
            );
    });
    assert!(matches!(refusal(&upgraded), FormatError::NotCanonical));
}

/// Returns the metadata of a file.
fn golden_json(bytes: &[u8]) -> serde_json::Value {
    let (_, header) = SafeTensors::read_metadata(bytes).unwrap();
    serde_json::from_str(&header.metadata().as_ref().unwrap()["nysketch"]).unwrap()
}

#[test]
fn levels_and_holes_of_points_are_checked() {
    use FormatError::*;
    let plan = |name: &str| std::fs::read(golden(&format!("v3/{name}.plan.nys"))).unwrap();
    let (mixed, holes) = (plan("mixed"), plan("holes"));
    let i32_at = |t: &mut Tensors, name: &str, at: usize, x: i32| {
        t.get_mut(name).unwrap().2[4 * at..4 * (at + 1)].copy_from_slice(&x.to_le_bytes());
    };
    for bad in [5, -1, i32::MAX] {
        let found = words(&edit(&mixed, |_, t| i32_at(t, "landmark_levels", 0, bad)));
        assert!(found.contains("a level in each category"), "{bad}: {found}");
    }
    // The second category has one level less.
    assert!(words(&edit(&mixed, |_, t| i32_at(t, "landmark_levels", 1, 4))).contains("a level in"));
    for (bad, expected) in [
        (0.0, "between 1e-6 and 1e6"),
        (-2.0, "between 1e-6 and 1e6"),
        (1e7, "between 1e-6 and 1e6"),
        (f64::NAN, "not finite"),
        (f64::INFINITY, "not finite"),
    ] {
        let found = words(&edit(&mixed, |_, t| {
            t.get_mut("category_weight").unwrap().2[..8].copy_from_slice(&bad.to_le_bytes());
        }));
        assert!(found.contains(expected), "{bad}: {found}");
    }
    for name in ["landmark_levels", "category_weight", "witnesses.levels"] {
        assert!(matches!(refusal(&edit(&mixed, |_, t| drop(t.remove(name)))), MissingTensor(_)));
        let other = edit(&mixed, |_, t| {
            let tensor = t[name].clone();
            let bytes = tensor.2.iter().chain(&tensor.2).copied().collect();
            let shape = [&[2 * tensor.1[0]], &tensor.1[1..]].concat();
            t.insert(name.into(), (tensor.0, shape, bytes));
        });
        assert!(matches!(refusal(&other), Shape { .. }), "{name}");
    }
    let left = edit(&mixed, |_, t| drop(t.remove("witnesses.rows")));
    assert!(matches!(refusal(&left), UnexpectedTensor(_)));
    assert!(matches!(
        refusal(&edit(&mixed, |_, t| i32_at(t, "witnesses.levels", 0, 1))),
        SectionDigest { .. }
    ));

    // Retained rows with a matching digest.
    let changed = |file: &[u8], change: Change<'_>| {
        let digest = golden_json(file)["sections"]["witnesses"].as_str().unwrap().to_string();
        match refusal(&edit(file, change)) {
            SectionDigest { expected, .. } => edit(file, |j, t| {
                change(j, t);
                *j = j.replace(&digest, &expected);
            }),
            other => panic!("{other}"),
        }
    };
    let value = |at: usize, bits: u32| {
        move |_: &mut String, t: &mut Tensors| i32_at(t, "witnesses.rows", at, bits as i32)
    };
    let found = words(&changed(&mixed, &|_, t| i32_at(t, "witnesses.levels", 1, 4)));
    assert!(found.contains("with a level in each category"), "{found}");
    let missing = f32::NAN.to_bits();
    for (file, at, bits) in [
        (&mixed, 0, missing),
        (&holes, 0, 0xffc0_0000),
        (&holes, 0, 0x7fc0_0001),
        (&holes, 0, f32::INFINITY.to_bits()),
    ] {
        let found = words(&changed(file, &value(at, bits)));
        assert!(found.contains("finite values"), "{bits:x}: {found}");
    }
    // One more missing value gives another valid plan.
    assert_eq!(missing, 0x7fc0_0000);
    let other = Plan::from_bytes(&changed(&holes, &value(0, missing))).unwrap();
    assert_ne!(other, Plan::from_bytes(&holes).unwrap());
    // Landmarks have no missing values.
    let holed = edit(&holes, |_, t| i32_at(t, "landmarks", 0, missing as i32));
    assert!(words(&holed).contains("finite values"));
}

#[test]
fn sums_of_levels_and_holes_belong_together() {
    let rows = Sketch::from_bytes(&with_holes()).unwrap();
    let sum = |sum: Sum, i: usize| rows.sums()[sum][i];
    let (all, cell, d) = (i128::from(rows.rows()), sum(Sum::CellRows, 0), 5);
    // Cell 0 has rows, in some of which the vector is missing; the first number is never missing.
    assert!(cell > 1 && sum(Sum::CellAbsent, 3) > 0 && sum(Sum::CellAbsent, 0) == 0);
    let (levels, complete) = (sum(Sum::CellLevels, 0), i128::from(rows.complete_rows()));
    for (changes, expected) in [
        (&[("cell_levels", 0, levels + 1)][..], "the levels of 'group' in cell 0"),
        (&[("cell_levels", 0, levels - 1)], "the levels of 'group' in cell 0"),
        (&[("cell_levels", 0, -1)], "cell_levels[0]"),
        (&[("cell_levels", 0, i128::MAX)], "cell_levels[0]"),
        (&[("cell_absent", 3, cell + 1)], "cell_absent[3]"),
        (&[("cell_absent", 3, -1)], "cell_absent[3]"),
        (&[("cell_absent", 3, i128::MIN)], "cell_absent[3]"),
        // Sums without rows.
        (&[("cell_absent", 0, cell)], "cell_sum[0]"),
        (&[("cell_absent", 0, cell - 1), ("cell_sum", 0, 1 << 46)], "cell_sum[0]"),
        (&[("cell_absent", 0, cell - 1), ("cell_square", 0, 1 << 90)], "cell_square[0]"),
        (&[("cell_absent", 0, cell - 1)], "cell_square[0]"),
        (&[("complete", 0, all)], "the number of complete rows"),
        (&[("complete", 0, complete + 60)], "the number of complete rows"),
        (&[("complete", 0, all + 1)], "complete[0]"),
        (&[("complete", 0, -1)], "complete[0]"),
        (&[("complete", 0, i128::MAX)], "complete[0]"),
        (&[("complete", 0, 0)], "features[0]"),
    ] {
        let broken = edit(&with_holes(), |_, t| {
            changes.iter().for_each(|(sum, at, value)| put(t, sum, *at, *value));
        });
        let found = words(&broken);
        assert!(found.contains(expected), "{changes:?}: {found}");
    }
    assert_eq!(rows.plan().dims(), d);
    // Rows with the largest allowed counts.
    let heavy = edit(&with_holes(), |_, t| {
        put(t, "rows", 0, 1 << 38);
        put(t, "complete", 0, 1 << 38);
        put(t, "cell_rows", 0, 1 << 38);
        put(t, "cell_absent", 0, (1 << 38) - 1);
        put(t, "cell_sum", 0, 1 << 82);
        put(t, "cell_square", 0, 1 << 126);
    });
    assert!(words(&heavy).contains("cell_sum[0]"));
}

/// A header that promises far more than the file contains must not cost memory or time.
#[test]
fn hostile_headers_are_refused_at_once() {
    for header in [
        r#"{"__metadata__":{"nysketch":"{}"},"a":{"dtype":"U64","shape":[4611686018427387904,2],"data_offsets":[0,8]}}"#,
        r#"{"a":{"dtype":"U8","shape":[1000000000000],"data_offsets":[0,1000000000000]}}"#,
        r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}"#,
    ] {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        refusal(&bytes);
    }
    refusal(&u64::MAX.to_le_bytes());
    refusal(&[&50_000_000u64.to_le_bytes()[..], b"{}"].concat());
    // A plan whose columns would need 2³¹ products: the tensor is missing, so nothing is allocated.
    let names = (0..60_000).map(|i| format!("\"c{i}\"")).collect::<Vec<_>>().join(",");
    refusal(&edited(|json, _| *json = json.replace("\"height\",\"width\",\"βάρος\"", &names)));
}

#[test]
fn kinds_are_told_apart() {
    let plan = std::fs::read(golden("v1/nystrom.plan.nys")).unwrap();
    let error = Sketch::from_bytes(&plan).unwrap_err().to_string();
    assert_eq!(error, "the file is a plan, but a sketch is needed here");
    assert!(Plan::from_bytes(&golden_bytes()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Damage with a valid checksum gives an error or a valid sketch, never a panic.
    #[test]
    fn random_damage_never_panics(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let files = [golden_bytes, with_witnesses, with_categories, with_holes];
        let mut bytes = files[edits.len() % 4]();
        let length = bytes.len();
        for (at, value) in edits {
            bytes[at.index(length)] = value;
        }
        let _ = decode(&with_checksum(bytes));
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode(&bytes).is_err());
    }

    /// Sketches of random plans survive a round trip.
    #[test]
    fn round_trip(seed in any::<u64>(), d in 1usize..6, n in 1usize..60, fourier in any::<bool>()) {
        let mut s = Stream(seed);
        let table = Table::unnamed(d, (0..n * d).map(|_| s.normal() * 10.0).collect()).unwrap();
        let params = if fourier { PlanParams::default().fourier(3) } else { nystrom(None, Sampling::Uniform) };
        let plan = Arc::new(plan_for(&table, params.seed(seed)).unwrap().plan);
        let whole = sketch(&plan, &table);
        prop_assert_eq!(&Sketch::from_bytes(&whole.to_bytes()).unwrap(), &whole);
        prop_assert_eq!(&Plan::from_bytes(&plan.to_bytes()).unwrap(), plan.as_ref());
    }
}

/// Returns a sketch of a few rows with a plan that was made from no rows.
fn private_sketch() -> Sketch {
    let private = PrivateParams::new([("a".into(), 0.0, 9.0), ("b".into(), -1.0, 1.0)]);
    let params = PlanParams::default().landmarks(5).private(private.clone());
    let plan = plan_for(&private.anywhere(50, 0).unwrap(), params).unwrap().plan;
    let rows = (0..40).map(|i| f64::from(i % 9) / 3.0).collect();
    let table = Table::new(plan.columns.clone(), rows).unwrap();
    Sketch::of(&plan.into(), &table, SketchParams::default(), &()).unwrap()
}

fn masked() -> Vec<u8> {
    use nysketch::ledger::Ledgers;
    use nysketch::masking::{Parties, SecretKey, Session, mask};
    let keys = ["a", "b"].map(|id| SecretKey::random(id).unwrap());
    let parties = Parties::new(keys.iter().map(SecretKey::party).collect()).unwrap();
    let session = Session::new(&"0123456789abcdef".repeat(2)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ledgers = Ledgers::at(folder.path());
    keys[0].write_new(&folder.path().join("a.key"), &ledgers).unwrap();
    mask(&private_sketch(), &keys[0], &parties, &session, &ledgers).unwrap().to_bytes()
}

#[test]
fn masked_sketches_say_whose_they_are() {
    use FormatError::*;
    let bytes = masked();
    assert_eq!(edit(&bytes, |_, _| {}), bytes);
    let json = golden_json(&bytes);
    assert_eq!((&json["format"], &json["kind"]), (&4.into(), &"masked".into()));
    let by = &json["masked"];
    let [list, public, session] =
        ["parties_fingerprint", "public", "session"].map(|key| by[key].as_str().unwrap());
    let refused = |from: &str, to: &str| {
        let bad = edit(&bytes, |j, _| {
            assert!(j.contains(from), "{from}");
            *j = j.replace(from, to);
        });
        refusal(&bad)
    };
    for (from, to) in [
        ("\"parties\":2", "\"parties\":1"),
        ("\"parties\":2", "\"parties\":10001"),
        ("\"party\":\"a\"", "\"party\":\"a b\""),
        ("\"party\":\"a\"", "\"party\":\"\""),
        (list, &list[1..]),
        (list, &list.to_uppercase()),
        (public, &public[2..]),
        (public, &"f".repeat(64)),
        (session, &session[1..]),
        (session, "january"),
        (&format!("\"masked\":{by},"), ""),
        ("\"format\":4", "\"format\":2"),
        ("\"format\":4", "\"format\":3"),
    ] {
        assert!(matches!(refused(from, to), Value(_)), "{from} {to}");
    }
    // Valid content that is not written canonically.
    assert!(matches!(refused(session, &session.to_uppercase()), NotCanonical));
    assert!(matches!(refused("\"party\":", "\"who\":"), Metadata(_)));
    assert!(matches!(refused("\"kind\":\"masked\"", "\"kind\":\"plan\""), UnexpectedTensor(_)));
    // Masked words need not satisfy the rules of sums, and a plain sketch has no check words.
    let found = refused("\"kind\":\"masked\"", "\"kind\":\"sketch\"");
    assert!(matches!(found, Value(_)), "{found}");
    for (name, shape) in [("check", vec![1, 2]), ("rows", vec![2, 2])] {
        let data = vec![0; 8 * shape.iter().product::<usize>()];
        let found = refusal(&edit(&bytes, |_, t| {
            t.insert(name.into(), (Dtype::U64, shape.clone(), data.clone()));
        }));
        assert!(matches!(found, Shape { .. }), "{found}");
    }
    assert!(matches!(
        refusal(&edit(&bytes, |_, t| drop(t.remove("check")))),
        MissingTensor(name) if name == "check"
    ));
    assert!(matches!(
        refusal(&edit(&bytes, |_, t| t.get_mut("bandwidths").unwrap().2[0] ^= 1)),
        Fingerprint { .. }
    ));
}
