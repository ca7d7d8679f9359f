use super::check::{share, tag};
use super::layout::Layout;
use super::stream::{Context, each_word};
use super::*;
use crate::ledger::Ledgers;
use nysketch_core::error::{Error, Result};
use nysketch_core::numeric::digest::{hex, sha256, unhex};
use nysketch_core::pass::SketchParams;
use nysketch_core::plan::Plan;
use nysketch_core::planning::{PlanParams, PrivateParams, plan_for};
use nysketch_core::rows::Table;
use nysketch_core::sketch::Sketch;
use nysketch_core::sketch::folds::FoldRule;
use proptest::prelude::*;
use std::sync::Arc;

/// Rows of a party, including some that are skipped as invalid.
fn table(seed: u64, rows: usize) -> Table {
    let value = |i: u64| ((i * i * (seed + 3) + 11 * i) % 1009) as f64 * 0.37 - 40.0;
    let mut values: Vec<f64> = (0..2 * rows as u64).map(value).collect();
    if rows > 7 {
        values[9] = f64::INFINITY;
    }
    Table::unnamed(2, values).unwrap()
}

fn plan(landmarks: usize) -> Arc<Plan> {
    let collect =
        nysketch_core::plan::collect::Collect { kernel: true, cells: true, moments: true };
    private_plan(PlanParams::default().landmarks(landmarks).collect(collect))
}

/// A plan that was computed without rows.
fn private_plan(params: PlanParams) -> Arc<Plan> {
    let private = PrivateParams::new(["c0", "c1"].map(|name| (name.into(), -50.0, 50.0)));
    let anywhere = private.anywhere(1000, 0).unwrap();
    Arc::new(plan_for(&anywhere, params.private(private)).unwrap().plan)
}

fn sketch(plan: &Arc<Plan>, seed: u64, rows: usize) -> Sketch {
    Sketch::of(
        plan,
        &table(seed, rows),
        SketchParams::default().invalid(nysketch_core::rows::Invalid::Skip),
        &(),
    )
    .unwrap()
}

/// Keys that are the same in every run.
fn keys(n: usize) -> Vec<SecretKey> {
    let bytes = |i: usize| {
        let mut bytes = [0x5a; 32];
        // X25519 ignores the lowest three bits.
        bytes[8..16].copy_from_slice(&(i as u64).to_le_bytes());
        bytes
    };
    (0..n).map(|i| SecretKey::from_bytes(&format!("site-{i}"), &bytes(i)).unwrap()).collect()
}

fn list(keys: &[SecretKey]) -> Parties {
    Parties::new(keys.iter().map(SecretKey::party).collect()).unwrap()
}

fn session(digit: &str) -> Session {
    Session::new(&digit.repeat(32)).unwrap()
}

/// The parties of a session and their sketches.
struct Group {
    keys: Vec<SecretKey>,
    sketches: Vec<Sketch>,
    folder: tempfile::TempDir,
}

/// Ledgers in a folder, including one for a key.
fn ledgers(folder: &tempfile::TempDir, key: &SecretKey) -> Ledgers {
    let ledgers = Ledgers::at(folder.path());
    match new_session_ledger(&ledgers, &key.party().public()) {
        Ok(()) | Err(Error::Masking(MaskingError::NotNew { .. })) => ledgers,
        Err(other) => panic!("{other}"),
    }
}

impl Group {
    fn new(n: usize, landmarks: usize) -> Self {
        let plan = plan(landmarks);
        let sketches = (0..n).map(|i| sketch(&plan, i as u64, 20 + 3 * i)).collect();
        Group { keys: keys(n), sketches, folder: tempfile::tempdir().unwrap() }
    }

    fn mask(&self, who: usize, sketch: &Sketch, session: &Session) -> Result<Masked> {
        let (key, ledgers) = (&self.keys[who], ledgers(&self.folder, &self.keys[who]));
        mask(sketch, key, &list(&self.keys), session, &ledgers)
    }

    fn masked(&self, session: &Session) -> Vec<Masked> {
        let all = self.sketches.iter().enumerate();
        all.map(|(who, sketch)| self.mask(who, sketch, session).unwrap()).collect()
    }

    fn plain(&self) -> Sketch {
        let mut total = self.sketches[0].clone();
        self.sketches[1..].iter().for_each(|sketch| total.merge(sketch).unwrap());
        total
    }
}

fn unmask(files: impl IntoIterator<Item = Masked>) -> Result<Unmasked> {
    let mut all = Unmasking::default();
    files.into_iter().try_for_each(|file| all.add(file))?;
    all.finish()
}

/// Returns the error with which files are refused.
fn refused(files: impl IntoIterator<Item = Masked>) -> MaskingError {
    match unmask(files).unwrap_err() {
        Error::Masking(why) => why,
        other => panic!("{other}"),
    }
}

/// A file with one changed word.
fn altered(file: &Masked, at: usize, by: i128) -> Masked {
    let mut words = file.words().to_vec();
    words[at] = words[at].wrapping_add(by);
    Masked::from_parts(file.plan().clone(), file.label().clone(), file.terms().cloned(), words)
}

/// Computed from FORMAT.md with HMAC and SHA-256 of Python and an explicit ChaCha20; the keys and
/// the shared secret are those of RFC 7748, section 6.1.
#[test]
fn keys_and_words_are_those_of_the_format() {
    let key = |id, text| SecretKey::from_bytes(id, &unhex(text).unwrap()).unwrap();
    let alice = key("alice", "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
    let bob = key("bob", "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
    let shared = alice.shared(&bob.party()).unwrap();
    assert_eq!(shared, bob.shared(&alice.party()).unwrap());
    assert_eq!(hex(&*shared), "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
    let parties = Parties::new(vec![bob.party(), alice.party()]).unwrap().fingerprint();
    assert_eq!(parties, "90f520195d085f17c55846d8164e0406ef7cd99c6241dd7cad9b7ccea2ba936d");
    let session = Session::new("000102030405060708090a0b0c0d0e0f").unwrap();
    let plan = sha256(b"");
    let context = Context { session: &session, parties: &parties, subject: &plan };
    let pair = context.pair_key(&shared, "alice", "bob");
    assert_eq!(hex(&*pair), "c6731f76431b50610d428d4487b38d56da648fba0794895eaf557969431972a2");
    let mut words = Vec::new();
    each_word(&pair, 300, |k, word| {
        assert_eq!(k, words.len());
        words.push(word as u128);
    });
    assert_eq!(words[0], 0xa19b95a545cbcc8c6d9955b36f49ef51);
    assert_eq!(words[1], 0x7cc15542d982994dd3121663473ff3e3);
    assert_eq!((words[299], words.len()), (0x71e81a0084e87468e170e695dbb6e602, 300));
    assert_eq!(share(&context, "alice"), 0x09af4c6d113945634a320ad065421634);
    assert_eq!(share(&context, "bob") as u128, 0xa4b0626f68d456369571816211650fbf);
    let tag = tag(&context, &[1, 2, 3, 77, 78], &(3..5));
    assert_eq!(tag as u128, 0xd34c1888d3288ecac7adf1a7338fd4a0);
}

#[test]
fn the_sum_of_masked_sketches_is_the_plain_merge() {
    for n in [2, 5, 50] {
        let group = Group::new(n, 12);
        let plain = group.plain();
        // Invalid rows of a private plan leave no trace.
        assert_eq!(plain.skipped(), 0);
        let mut files = group.masked(&session("a"));
        // In any order, and read from files.
        files.rotate_left(n / 2);
        files.swap(0, n - 1);
        let files = files.iter().map(|file| Masked::from_bytes(&file.to_bytes()).unwrap());
        assert_eq!(unmask(files).unwrap().to_bytes(), plain.to_bytes(), "{n}");
    }
}

/// Σ (count − expected)² / expected over the 256 values of a byte, for the bytes at one index of
/// the words.
fn chi_square(words: &[i128], place: usize) -> f64 {
    let mut counts = [0.0; 256];
    words.iter().for_each(|word| counts[usize::from(word.to_le_bytes()[place])] += 1.0);
    let expected = words.len() as f64 / 256.0;
    counts.iter().map(|count: &f64| (count - expected).powi(2) / expected).sum()
}

/// For uniform bytes the statistic has mean 255 and deviation √510 = 22.6: the probability that any
/// of 16 indices deviates by more than five deviations is 1 in 10⁵. Almost all bytes of sums are 0
/// or 255, and the same holds for the difference of two files with the same masks.
#[test]
fn masked_words_look_like_random_bytes() {
    let group = Group::new(3, 400);
    let sketch = &group.sketches[0];
    let uniform = |words: &[i128]| {
        assert!(words.len() > 2500, "{}", words.len());
        (0..16).all(|place| (chi_square(words, place) - 255.0).abs() < 5.0 * 22.6)
    };
    let plain = Layout::of(sketch.plan(), None).words(sketch.sums());
    assert!(!uniform(&plain));
    let files = group.masked(&session("a"));
    assert!(files.iter().all(|file| uniform(file.words())));
    // Two of three parties reveal no sums, and two sessions of one party reveal none.
    let difference = |a: &Masked, b: &Masked| -> Vec<i128> {
        a.words().iter().zip(b.words()).map(|(a, b)| a.wrapping_sub(*b)).collect()
    };
    assert!(uniform(&difference(&files[0], &files[1])));
    let next = group.masked(&session("b"));
    assert!(uniform(&difference(&files[0], &next[0])));
    let mut two = files[0].clone();
    two.add(&files[1]);
    assert!(uniform(two.words()));
    two.add(&files[2]);
    assert!(!uniform(two.words()));
}

#[test]
fn incomplete_and_mixed_sessions_are_refused() {
    let group = Group::new(4, 6);
    let files = group.masked(&session("a"));
    let all = || files.iter().cloned();
    assert!(matches!(refused(all().skip(1)), MaskingError::Missing { found: 3, parties: 4, .. }));
    assert!(matches!(refused([]), MaskingError::Nothing));
    let doubled = refused(all().chain([files[2].clone()]));
    assert_eq!(doubled, MaskingError::Doubled { party: "site-2".into() });
    // One file replaces another.
    let doubled = refused(all().take(3).chain([files[0].clone()]));
    assert_eq!(doubled, MaskingError::Doubled { party: "site-0".into() });
    let other = group.masked(&session("b"));
    let mixed = refused(all().take(3).chain([other[3].clone()]));
    assert!(matches!(mixed, MaskingError::MixedSessions { party, .. } if party == "site-3"));
    // A fifth party that only one party knows.
    let wider = list(&keys(5));
    // Without the ledger of the first files, which would refuse the following ones.
    let forgetful = |sketch: &Sketch, who: usize, parties: &Parties| {
        let (folder, key) = (tempfile::tempdir().unwrap(), &group.keys[who]);
        mask(sketch, key, parties, &session("a"), &ledgers(&folder, key)).unwrap()
    };
    let wide = forgetful(&group.sketches[3], 3, &wider);
    let mixed = refused(all().take(3).chain([wide]));
    assert!(matches!(mixed, MaskingError::MixedParties { party, .. } if party == "site-3"));
    let plan = plan(7);
    let parties = list(&group.keys);
    let planned = forgetful(&sketch(&plan, 3, 29), 3, &parties);
    let error = unmask(all().take(3).chain([planned])).unwrap_err();
    assert!(matches!(error, Error::PlanMismatch { .. }));
    // Two files of one party.
    let replayed = forgetful(&group.sketches[1], 0, &parties);
    let replayed = refused(all().chain([replayed]));
    assert_eq!(replayed, MaskingError::Replayed { party: "site-0".into() });
}

#[test]
fn altered_files_are_refused() {
    let group = Group::new(3, 6);
    let files = group.masked(&session("a"));
    let with = |file: Masked| refused([files[0].clone(), file, files[2].clone()]);
    let layout = Layout::of(files[1].plan(), None);
    for at in 0..layout.len() {
        for by in [1, -1, 1 << 127] {
            let why = if at == layout.check().start {
                MaskingError::MasksRemain
            } else {
                MaskingError::Altered
            };
            assert_eq!(with(altered(&files[1], at, by)), why);
        }
    }
    let relabelled = |change: &dyn Fn(&mut Label)| {
        let mut label = files[1].label().clone();
        change(&mut label);
        Masked::from_parts(files[1].plan().clone(), label, None, files[1].words().to_vec())
    };
    let stranger = keys(9).pop().unwrap().party();
    let why = with(relabelled(&|label| label.party = stranger.clone()));
    assert!(matches!(why, MaskingError::OtherParties { .. }));
    // All labels are those of another session, and the masks are not.
    let moved = files.iter().map(|file| {
        let label = Label { session: session("b"), ..file.label().clone() };
        Masked::from_parts(file.plan().clone(), label, None, file.words().to_vec())
    });
    assert_eq!(refused(moved), MaskingError::MasksRemain);
}

#[test]
fn a_session_masks_one_sketch() {
    let group = Group::new(2, 6);
    let [a, b] = [&group.sketches[0], &group.sketches[1]];
    let first = group.mask(0, a, &session("a")).unwrap();
    assert_eq!(group.mask(0, a, &session("a")).unwrap().to_bytes(), first.to_bytes());
    let error = group.mask(0, b, &session("a")).unwrap_err();
    assert!(matches!(error, Error::Masking(MaskingError::Replay { .. })));
    assert_ne!(group.mask(0, a, &session("b")).unwrap().words(), first.words());
}

#[test]
fn only_sums_are_masked_and_by_a_listed_key() {
    let group = Group::new(2, 6);
    let refused = |sketch: &Sketch, key: &SecretKey, parties: &Parties| {
        let ledgers = ledgers(&group.folder, key);
        let error = mask(sketch, key, parties, &session("a"), &ledgers).unwrap_err();
        let ledger = session_ledger(&ledgers, &key.party().public());
        assert_eq!(std::fs::read_to_string(ledger).unwrap().lines().count(), 1);
        match error {
            Error::Masking(why) => why,
            other => panic!("{other}"),
        }
    };
    let (parties, own, sketch) = (list(&group.keys), &group.keys[0], &group.sketches[0]);
    let table = table(0, 5);
    let plan = Arc::new(plan_for(&table, PlanParams::default()).unwrap().plan);
    let shown = Sketch::of(&plan, &table, SketchParams::default(), &()).unwrap();
    assert_eq!(refused(&shown, own, &parties), MaskingError::Plan);
    let rule = FoldRule::by_content(3).unwrap();
    let folded = Sketch::empty_folds(sketch.plan().clone(), rule).unwrap();
    assert_eq!(refused(&folded, own, &parties), MaskingError::Folds);
    let stranger = keys(3).pop().unwrap();
    let id = "site-2".to_string();
    assert_eq!(refused(sketch, &stranger, &parties), MaskingError::NotListed { id });
    let impostor = SecretKey::random("site-0").unwrap();
    let id = "site-0".to_string();
    assert_eq!(refused(sketch, &impostor, &parties), MaskingError::AnotherKey { id });
    // Points of order 1 and 8: the secret shared with any party is zero.
    for weak in [
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    ] {
        let weak = Party::new("weak", PublicKey::from_hex(weak).unwrap()).unwrap();
        let parties = Parties::new(vec![own.party(), weak]).unwrap();
        assert_eq!(refused(sketch, own, &parties), MaskingError::WeakKey { id: "weak".into() });
    }
}

#[test]
fn lists_have_different_parties() {
    let all: Vec<Party> = keys(3).iter().map(SecretKey::party).collect();
    let refused = |parties: Vec<Party>| match Parties::new(parties).unwrap_err() {
        Error::Masking(why) => why,
        other => panic!("{other}"),
    };
    assert_eq!(refused(all[..1].to_vec()), MaskingError::PartyCount { found: 1, most: 10_000 });
    assert_eq!(
        refused(vec![all[0].clone(); 10_001]),
        MaskingError::PartyCount { found: 10_001, most: 10_000 }
    );
    let twin = Party::new("site-0", all[1].public()).unwrap();
    let id = "site-0".to_string();
    assert_eq!(refused(vec![all[0].clone(), twin]), MaskingError::SameId { id });
    let copy = Party::new("copy", all[1].public()).unwrap();
    let why = refused(vec![all[1].clone(), all[0].clone(), copy]);
    assert_eq!(why, MaskingError::SameKey { first: "copy".into(), second: "site-1".into() });
    // The same numbers in other bytes: p + 2, and 2 with the unused bit set.
    let mut bytes = [0xff; 32];
    (bytes[0], bytes[31]) = (0xef, 0x7f);
    assert_eq!(PublicKey::new(bytes), None);
    bytes[0] = 0xec;
    assert!(PublicKey::new(bytes).is_some());
    let mut bytes = [0; 32];
    (bytes[0], bytes[31]) = (2, 0x80);
    assert_eq!(PublicKey::new(bytes), None);
    for id in ["", "a b", "a\nb", "é", &"a".repeat(65)] {
        assert!(Party::new(id, all[0].public()).is_err(), "{id}");
    }
}

#[test]
fn a_masked_file_is_no_sketch() {
    let group = Group::new(2, 6);
    let masked = group.mask(0, &group.sketches[0], &session("a")).unwrap();
    let bytes = masked.to_bytes();
    assert_eq!(Masked::from_bytes(&bytes).unwrap(), masked);
    assert_eq!(masked.plan().fingerprint(), group.sketches[0].plan().fingerprint());
    let error = Sketch::from_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains("masked sketch") && error.contains("nysketch merge"), "{error}");
    assert!(Plan::from_bytes(&bytes).is_err());
    let error = Masked::from_bytes(&group.sketches[0].to_bytes()).unwrap_err().to_string();
    assert!(error.contains("is a sketch, but a masked sketch is needed"), "{error}");
    // Every damaged byte is detected.
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        assert!(Masked::from_bytes(&damaged).is_err(), "{at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Holds for any rows of the parties, including none, and for any sums.
    #[test]
    fn random_sessions_add_up(
        rows in prop::collection::vec((0u64..1000, 0usize..40), 2..6),
        landmarks in 1usize..7,
        kernel: bool,
        name in "[0-9a-f]{32,128}",
    ) {
        let params = PlanParams::default().landmarks(landmarks);
        let params = params.collect(nysketch_core::plan::collect::Collect { kernel, cells: true, moments: !kernel });
        let plan = private_plan(params);
        let mut group = Group::new(0, 2);
        group.keys = keys(rows.len());
        let of = |seed: u64, rows: usize| match rows {
            0 => Sketch::empty(plan.clone()),
            _ => sketch(&plan, seed, rows),
        };
        group.sketches = rows.iter().map(|(seed, rows)| of(*seed, *rows)).collect();
        let total = unmask(group.masked(&Session::new(&name).unwrap())).unwrap();
        prop_assert_eq!(total.to_bytes(), group.plain().to_bytes());
    }
}

fn noise(epsilon: f64, honest: u64) -> NoiseParams {
    let budget = crate::dp::Budget::new(epsilon, 1e-6).unwrap();
    NoiseParams { budget, spend: Vec::new(), honest, other_people: false }
}

impl Group {
    fn mask_noisy(&self, who: usize, session: &Session, params: &NoiseParams) -> Result<Masked> {
        let (key, ledgers) = (&self.keys[who], ledgers(&self.folder, &self.keys[who]));
        let sketch = &self.sketches[who];
        Ok(mask_noisy(sketch, key, &list(&self.keys), session, &ledgers, params)?.0)
    }

    fn release(&self, session: &Session, params: &NoiseParams) -> crate::dp::Release {
        let all = (0..self.keys.len()).map(|who| self.mask_noisy(who, session, params).unwrap());
        match unmask(all).unwrap() {
            Unmasked::Release(release) => release,
            Unmasked::Sketch(_) => panic!("a sketch"),
        }
    }
}

/// The total noise of all shares is that of the release, and the file of one party contains no sum
/// without it.
#[test]
fn noise_of_all_parties_is_a_release() {
    use crate::dp::Mechanism;
    let group = Group::new(5, 40);
    let release = group.release(&session("e"), &noise(1.0, 3));
    assert_eq!(crate::dp::Release::from_bytes(&release.to_bytes()).unwrap(), release);
    let plain = group.plain();
    for (spending, noisy) in release.spendings().iter().zip(release.noisy()) {
        let exact = spending.mechanism.exact(&plain).unwrap();
        let deviation = spending.deviation();
        let squares = noisy.iter().zip(&exact).map(|(a, b)| ((a - b) as f64 / deviation).powi(2));
        let mean = squares.sum::<f64>() / exact.len() as f64;
        // Six standard deviations of a mean of squares.
        let error = 6.0 * (2.0 / exact.len() as f64).sqrt();
        assert!((mean - 1.0).abs() < error, "{}: {mean}", spending.mechanism.name());
    }
    // Three of five: each adds a third of the noise that the release needs.
    let central = crate::dp::Release::of(&plain, noise(1.0, 1).budget, &[]).unwrap();
    let ratio = release.spendings()[0].deviation() / central.spendings()[0].deviation();
    assert!((ratio / (5f64 / 3.0).sqrt() - 1.0).abs() < 0.05, "{ratio}");
    assert_eq!(release.spendings()[0].mechanism, Mechanism::Counts);
}

#[test]
fn noisy_sessions_are_used_once_and_agreed_on() {
    let group = Group::new(3, 10);
    let (first, params) = (session("a"), noise(1.0, 2));
    let files: Vec<Masked> =
        (0..3).map(|who| group.mask_noisy(who, &first, &params).unwrap()).collect();
    // The same sketch is also refused, because its noise would differ.
    let again = group.mask_noisy(0, &first, &params).unwrap_err();
    assert!(matches!(again, Error::Masking(MaskingError::Replay { .. })), "{again}");
    let plain = group.mask(0, &group.sketches[0], &first).unwrap_err();
    assert!(matches!(plain, Error::Masking(MaskingError::Replay { .. })), "{plain}");
    for file in &files {
        let read = Masked::from_bytes(&file.to_bytes()).unwrap();
        assert_eq!(read, *file);
    }
    // Other parties requested another ε, fewer honest parties, or no noise.
    let others = Group { folder: tempfile::tempdir().unwrap(), ..Group::new(3, 10) };
    for (wrong, what) in [(noise(2.0, 2), "ε = 2"), (noise(1.0, 1), "1 honest")] {
        let folder = tempfile::tempdir().unwrap();
        let (sketch, key) = (&others.sketches[2], &others.keys[2]);
        let ledgers = ledgers(&folder, key);
        let file = mask_noisy(sketch, key, &list(&others.keys), &first, &ledgers, &wrong).unwrap();
        let why = refused([files[0].clone(), files[1].clone(), file.0]);
        assert!(why.to_string().contains(what), "{why}");
    }
    let file = others.mask(2, &others.sketches[2], &first).unwrap();
    let why = refused([files[0].clone(), files[1].clone(), file]);
    assert!(matches!(why, MaskingError::MixedTerms { .. }), "{why}");
    let error = group.mask_noisy(0, &session("b"), &noise(1.0, 3)).unwrap_err();
    assert!(error.to_string().contains("`honest`"), "{error}");
    let altered = altered(&files[1], 3, 1);
    assert_eq!(refused([files[0].clone(), altered, files[2].clone()]), MaskingError::Altered);
}
