"""Plans, sketches and models: the same bytes as the command, and the same numbers as NumPy."""

import pickle
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nysketch import KCurve, Model, Plan, Sketch


@pytest.fixture(scope="module")
def plan(rows):
    return Plan.from_data(rows, landmarks=60)


def test_the_command_line_writes_the_same_bytes(rows, command, tmp_path):
    table = pa.table({f"c{j}": rows[:, j] for j in range(4)})
    pq.write_table(table, tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", rows)
    for file, X in [("x.npy", rows), ("x.parquet", table), ("x.npy", table)]:
        options = ["--landmarks", 70, "--scale", "standard", "--seed", 5]
        command("plan", tmp_path / file, "-o", tmp_path / "p.nys", *options)
        command("sketch", tmp_path / file, "--plan", tmp_path / "p.nys", "-o", tmp_path / "s.nys")
        command("fit", "gmm", tmp_path / "s.nys", "-k", 5, "-o", tmp_path / "m.json", "--seed", 3)
        plan = Plan.from_data(X, landmarks=70, scale="standard", seed=5)
        assert plan.to_bytes() == (tmp_path / "p.nys").read_bytes()
        sketch = plan.sketch(X)
        assert sketch.to_bytes(embed_witnesses=False) == (tmp_path / "s.nys").read_bytes()
        theirs = Model.load(tmp_path / "m.json")
        ours = sketch.fit_gmm(5, seed=3)
        assert np.array_equal(ours.means, theirs.means)
        assert np.array_equal(ours.variances, theirs.variances)
        command(
            "predict", tmp_path / "m.json", tmp_path / file, "-o", tmp_path / "y.npy", "--force"
        )
        assert np.array_equal(np.load(tmp_path / "y.npy"), ours.predict(X))


def test_witness_rows_stay_with_the_plan(rows, command, tmp_path):
    plan = Plan.from_data(rows, landmarks=60, witnesses=100)
    assert plan.witnesses.shape == (100, 4)
    # Every retained row is a row of the data, in single precision.
    assert all(np.abs(rows - x).max(axis=1).min() < 1e-5 for x in plan.witnesses)
    none = Plan.from_data(rows, landmarks=60, witnesses=0)
    assert none.witnesses is None and np.array_equal(none.landmarks, plan.landmarks)
    assert len(Plan.from_data(rows, landmarks=60).witnesses) == len(rows)
    with pytest.raises(ValueError, match="witnesses must be 0 or left out with landmarks_from"):
        Plan.from_data(rows, landmarks_from=rows[:5], witnesses=9)

    whole = plan.sketch(rows)
    whole.save(tmp_path / "whole.nys")
    whole.save(tmp_path / "light.nys", embed_witnesses=False)
    sizes = [(tmp_path / f).stat().st_size for f in ("whole.nys", "light.nys")]
    assert sizes[0] - sizes[1] > 1600
    light = Sketch.load(tmp_path / "light.nys")
    assert light == whole and light.plan == plan and light.plan.witnesses is None
    assert light.to_bytes() == whole.to_bytes(embed_witnesses=False)
    assert light.with_witnesses(plan).to_bytes() == whole.to_bytes()
    assert (light + whole).plan.witnesses is not None
    assert pickle.loads(pickle.dumps(light)).plan.witnesses is None
    assert pickle.loads(pickle.dumps(light.plan)) == plan
    with pytest.raises(ValueError, match="another plan"):
        light.with_witnesses(none)
    with pytest.raises(ValueError, match="retained rows of this plan are elsewhere"):
        light.plan.save(tmp_path / "p.nys")
    assert Plan.from_bytes(plan.to_bytes(embed_witnesses=False)).fingerprint == plan.fingerprint

    plan.save(tmp_path / "p.nys")
    np.save(tmp_path / "x.npy", rows)
    line = ("sketch", tmp_path / "x.npy", "--plan", tmp_path / "p.nys", "-o", tmp_path / "s.nys")
    command(*line, "--embed-witnesses")
    assert Sketch.load(tmp_path / "s.nys").to_bytes() == whole.to_bytes()


def test_weights_are_repeated_rows(rows, command, tmp_path):
    weights = np.arange(len(rows)) % 3
    table = pa.table({**{f"c{j}": rows[:, j] for j in range(4)}, "n": weights})
    pq.write_table(table, tmp_path / "x.parquet")
    command(
        "sketch", tmp_path / "x.parquet", "-o", tmp_path / "s.nys", "--weights", "n",
        "--landmarks", 50,
    )  # fmt: skip
    plan = Plan.from_data(table, weights="n", landmarks=50)
    sketch = plan.sketch(table, weights="n")
    assert sketch.to_bytes() == (tmp_path / "s.nys").read_bytes()
    assert sketch == plan.sketch(rows, weights=weights)
    assert plan.weight_unit == 1.0
    repeated = np.repeat(rows, weights, axis=0)
    assert sketch == plan.sketch(repeated, weights=np.ones(len(repeated)))
    with pytest.raises(ValueError, match="pass weights"):
        plan.sketch(rows)
    with pytest.raises(ValueError, match="without weights"):
        Plan.from_data(rows).sketch(rows, weights=weights)


def test_parts_add_up_to_the_whole(plan, rows):
    whole = plan.sketch(rows)
    parts = [plan.sketch(rows[i::3], threads=i + 1) for i in range(3)]
    assert parts[2] + parts[0] + parts[1] == whole
    assert sum(parts, start=plan.empty()) == whole
    assert whole - parts[1] == parts[0] + parts[2]
    assert (parts[2] + parts[0] + parts[1]).to_bytes() == whole.to_bytes()
    grown = Sketch(plan)
    for part in np.array_split(rows, 7):
        assert grown.update(part) is grown
    assert grown == whole
    added = parts[0]
    added += parts[1]
    assert (added.rows, parts[0].rows) == (2000, 1000), "operators make new sketches"
    with pytest.raises(ValueError, match="holds rows that the first does not"):
        parts[0] - whole
    with pytest.raises(ValueError, match="different plans"):
        whole + Plan.from_data(rows, landmarks=61).sketch(rows)


def test_no_rows_are_an_error_unless_they_may_be(plan, rows):
    nothing = pa.table({f"c{j}": rows[:0, j] for j in range(4)})
    for X in (rows[:0], nothing, nothing.to_reader()):
        with pytest.raises(ValueError, match="X has no rows.*allow_empty"):
            plan.sketch(X)
    assert plan.sketch(rows[:0], allow_empty=True) == plan.empty()
    reader = pa.table({f"c{j}": rows[:, j] for j in range(4)}).to_reader()
    assert plan.sketch(reader).rows == 3000
    with pytest.raises(ValueError, match="read before"):
        plan.sketch(reader)


def test_equal_fits_are_equal(plan, rows):
    sketch = plan.sketch(rows)
    assert sketch.fit_kmeans(3) == sketch.fit_kmeans(3) != sketch.fit_kmeans(4)


def test_impossible_sizes_are_told(plan, rows):
    with pytest.raises(ValueError, match="frequencies must be between"):
        Plan.from_data(rows, features="fourier", frequencies=10**13)
    with pytest.raises(MemoryError):
        plan.sketch(rows).fit_gmm(2).sample(2**60)
    assert plan.sketch(rows, threads=10**6) == plan.sketch(rows)


def test_a_failed_update_changes_nothing(plan, rows):
    sketch = plan.sketch(rows[:100])
    before = sketch.to_bytes()
    with pytest.raises(ValueError, match=r"X: row 2999, column 'c1'.*skip_invalid=True"):
        bad = rows.copy()
        bad[2999, 1] = np.nan
        sketch.update(bad)
    assert sketch.to_bytes() == before
    sketch.update(bad, skip_invalid=True)
    assert (sketch.rows, sketch.skipped) == (3099, 1)


def test_files_bytes_and_pickles(plan, rows, tmp_path):
    sketch = plan.sketch(rows)
    model = sketch.fit_kmeans(3)
    for thing in (plan, sketch, model):
        thing.save(tmp_path / "file")
        kind = type(thing)
        assert kind.load(str(tmp_path / "file")) == thing
        assert kind.from_bytes(thing.to_bytes()) == thing
        assert pickle.loads(pickle.dumps(thing)) == thing
        assert (tmp_path / "file").read_bytes() == thing.to_bytes()
        with pytest.raises(FileNotFoundError):
            kind.load(tmp_path / "nothing")
        with pytest.raises(FileNotFoundError, match="folder"):
            thing.save(tmp_path / "nowhere" / "file")
        (tmp_path / "bad").write_bytes(thing.to_bytes()[:-7])
        with pytest.raises(ValueError, match="bad"):
            kind.load(tmp_path / "bad")
    assert Plan.from_bytes(sketch.to_bytes()) == plan, "the plan of a sketch"
    assert {plan: 1}[pickle.loads(pickle.dumps(plan))] == 1
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_what_a_sketch_holds(rows):
    plan = Plan.from_data(rows, landmarks=40, scale="standard")
    sketch = plan.sketch(rows)
    scaled = (rows - plan.centre) / plan.scale
    landmarks = (plan.landmarks - plan.centre) / plan.scale
    squares = ((scaled[:, None] - landmarks[None]) ** 2).sum(axis=2)
    nearest = squares.argmin(axis=1)
    # The resolution of kernel values is 2**-23, and coordinates are in single precision.
    for sigma2, means in zip(plan.bandwidths, sketch.kernel_means, strict=True):
        assert np.allclose(np.exp(-squares / 2 / sigma2).mean(axis=0), means, atol=1e-5)
    assert np.array_equal(np.bincount(nearest, minlength=40), sketch.cell_rows)
    # The resolution of coordinates is 2**-28 of the largest value seen.
    for cell in range(40):
        members = rows[nearest == cell]
        if len(members):
            assert np.allclose(members.mean(axis=0), sketch.cell_means[cell], atol=1e-6)
            assert np.allclose(members.var(axis=0), sketch.cell_variances[cell], atol=1e-6)
    assert np.allclose(rows.mean(axis=0), sketch.mean, atol=1e-7)
    assert np.allclose(np.cov(rows.T, bias=True), sketch.covariance, atol=1e-6)
    missed = 1 - np.exp(-squares.min(axis=1)[:, None] / np.array(plan.bandwidths)).mean(axis=0)
    assert np.allclose(missed, sketch.missed, atol=1e-5)


def test_the_feature_map_is_that_of_the_paper(rows):
    x = rows[:200]
    plan = Plan.from_data(rows, landmarks=80, bandwidth=[20.0, 5.0])
    features = plan.transform(x, bandwidth=20.0)
    squares = ((x[:, None] - plan.landmarks[None]) ** 2).sum(axis=2)
    gram = ((plan.landmarks[:, None] - plan.landmarks[None]) ** 2).sum(axis=2)
    k, K = np.exp(-squares / 40), np.exp(-gram / 40)
    # Inner products of projections, k(x)' K^-1 k(y); eigenvalues below 1e-12 are cut off.
    assert np.allclose(features @ features.T, k @ np.linalg.pinv(K, 1e-12) @ k.T, atol=1e-6)
    assert np.allclose(plan.sketch(x).embedding(bandwidth=20.0), features.mean(axis=0), atol=1e-3)
    assert np.array_equal(plan.transform(x), plan.transform(x, bandwidth=5.0)), "the middle one"
    fourier = Plan.from_data(rows, features="fourier", frequencies=4000, bandwidth=20.0)
    products = fourier.transform(x) @ fourier.transform(x).T
    exact = np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / 40)
    # Means of 4,000 cosines: the standard error is at most 0.7 / sqrt(4000) = 0.011; five of them.
    assert np.abs(products - exact).max() < 0.055
    assert np.allclose(fourier.sketch(x).embedding(), fourier.transform(x).mean(axis=0), atol=1e-5)
    with pytest.raises(ValueError, match="one of the sketch's"):
        plan.sketch(x).embedding(bandwidth=3.0)


def test_a_known_covariance_is_a_number_variances_or_a_matrix(plan, rows):
    sketch = plan.sketch(rows)
    number = sketch.fit_gmm(5, known_covariance=1.0)
    assert np.array_equal(number.means, sketch.fit_gmm(5, known_covariance=np.ones(4)).means)
    matrix = np.eye(4) + 0.01
    model = sketch.fit_gmm(5, known_covariance=matrix)
    assert model.covariance_type == "tied" and np.allclose(model.covariances, matrix)
    assert np.allclose(model.variances, 1.01) and model.n_parameters == 10 + 20 + 4
    assert model.evaluate(rows)["nll"] < sketch.fit_gmm(5).evaluate(rows)["nll"] + 0.02
    for wrong, message in [
        (np.ones(3), "known_covariance must be of 4 columns"),
        (np.ones((4, 4)), "known_covariance must be positive definite"),
        (np.triu(np.ones((4, 4))), "not symmetric"),
        (np.ones((2, 4)), "as many rows as columns"),
    ]:
        with pytest.raises(ValueError, match=message):
            sketch.fit_gmm(5, known_covariance=wrong)


def test_models_are_numpy_arithmetic(plan, rows):
    sketch = plan.sketch(rows)
    kmeans = sketch.fit_kmeans(5)
    distances = np.sqrt(((rows[:, None] - kmeans.centres[None]) ** 2).sum(axis=2))
    assert np.allclose(kmeans.transform(rows), distances)
    assert np.array_equal(kmeans.predict(rows), distances.argmin(axis=1))
    assert kmeans.predict(rows).dtype == np.int32
    assert np.isclose(kmeans.evaluate(rows)["mse"], (distances.min(axis=1) ** 2).mean())
    assert kmeans.evaluate(rows, threads=1) == kmeans.evaluate(rows, threads=3)

    gmm = sketch.fit_gmm(5, covariance="diag")
    z = (rows[:, None] - gmm.means[None]) ** 2 / gmm.variances[None]
    logs = np.log(gmm.weights) - 0.5 * (z + np.log(2 * np.pi * gmm.variances[None])).sum(axis=2)
    density = np.log(np.exp(logs).sum(axis=1))
    assert np.allclose(gmm.log_density(rows), density)
    assert np.allclose(gmm.transform(rows), np.exp(logs - density[:, None]))
    assert np.isclose(gmm.evaluate(rows)["nll"], -density.mean())
    assert np.isclose(sketch.estimated_risk(gmm), -density.mean(), atol=0.05)
    drawn = gmm.sample(20_000, seed=1)
    assert np.allclose(drawn.mean(axis=0), gmm.weights @ gmm.means, atol=0.2)
    assert np.array_equal(drawn, gmm.sample(20_000, seed=1))

    pca = sketch.fit_pca(2)
    _, s, vectors = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    assert np.allclose(pca.explained_variance, s[:2] ** 2 / len(rows), rtol=1e-5)
    assert np.allclose(np.abs((pca.components * vectors[:2]).sum(axis=1)), 1, atol=1e-5)
    assert np.allclose(pca.transform(rows), (rows - pca.mean) @ pca.components.T)
    with pytest.raises(ValueError, match="no labels"):
        pca.predict(rows)
    with pytest.raises(AttributeError, match="pca model has no centres"):
        _ = pca.centres
    with pytest.raises(ValueError, match="mixture"):
        kmeans.log_density(rows)


def test_every_decoder_finds_the_clusters(rows):
    sketch = Plan.from_data(rows, landmarks=120).sketch(rows)
    best = sketch.fit_kmeans(5).evaluate(rows)["mse"]
    for decoder in ("cells", "kernel", "clompr"):
        model = sketch.fit_kmeans(5, decoder=decoder)
        assert decoder in model.report["decoder"]
        assert model.evaluate(rows)["mse"] < 1.1 * best
    medians = sketch.fit_kmedians(5)
    assert (
        medians.evaluate(rows)["mean_distance"]
        < 1.01 * sketch.fit_kmeans(5).evaluate(rows)["mean_distance"]
    )
    with pytest.raises(ValueError, match="must be used with decoder='clompr'"):
        sketch.fit_kmeans(5, separation=1.0)


def test_the_curve_over_k_suggests_five(rows):
    curve = Plan.from_data(rows).sketch(rows).k_curve(2, 9)
    assert isinstance(curve, KCurve)
    assert curve.ks == list(range(2, 10))
    assert curve.suggested == 5 and curve.clear
    assert curve.best == curve.models[3] and curve.best.k == 5
    assert curve.risks == sorted(curve.risks, reverse=True)


def test_remarks_are_warnings(rows):
    uneven = rows * [1, 1000, 1, 1]
    with pytest.warns(UserWarning, match="'c1' varies.*scale='standard'"):
        Plan.from_data(uneven)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Plan.from_data(uneven, warn=False)
        Plan.from_data(uneven, scale="standard")
        Plan.from_data(rows[:50])


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"landmarks": 0}, "landmarks must be at least 1, got 0"),
        ({"landmarks": -1}, "whole number"),
        ({"landmarks": 4000}, "only 3000 rows"),
        ({"sampling": "best"}, "sampling must be"),
        ({"scale": "unit"}, "scale must be one of none, standard"),
        ({"collect": ["rows"]}, "collect must be some of"),
        ({"bandwidth": 0.0}, "bandwidth must be"),
        ({"features": "wavelets"}, "features must be"),
        ({"features": "fourier", "landmarks": 3}, "no landmarks"),
        ({"frequencies": 3}, "features='fourier'"),
        ({"landmarks_from": [[1.0, 2.0]]}, "landmarks_from must be rows of 4 values"),
        ({"leverage_lambda": 2.0}, "leverage_lambda must be between"),
        ({"sample_rows": "some"}, "sample_rows must be a number or 'all'"),
        ({"weights": [1.0]}, "weights has 1 values, but X has 3000 rows"),
        ({"weights": np.full(3000, -0.5)}, "row 0, column 'weights': the weight -0.5 is negative"),
        ({"weights": np.ones(3000), "weight_unit": 1e-10}, "weight 1 is not between 0 and 0.429"),
        (
            {"weights": np.ones(3000), "weight_unit": 0.0},
            "weight_unit must be between 1e-50 and 1e50",
        ),
        ({"scale": True}, "scale must be one of none, standard, robust, got True"),
        ({"sampling": 3}, "sampling must be one of uniform.*got 3"),
        ({"seed": -1}, "whole number"),
        ({"columns": ["a"]}, "columns chooses by name"),
    ],
)
def test_bad_options_of_a_plan_are_told(rows, keywords, message):
    with pytest.raises(ValueError, match=message):
        Plan.from_data(rows, **keywords)


def test_bad_options_of_a_fit_are_told(plan, rows):
    sketch = plan.sketch(rows)
    for call, message in [
        (lambda: sketch.fit_kmeans(0), "k must be at least 1, got 0"),
        (lambda: sketch.fit_kmeans(61), "at most 60"),
        (lambda: sketch.fit_kmeans(2, decoder="magic"), "decoder must be"),
        (lambda: sketch.fit_gmm(2, known_covariance=-1.0), "known_covariance must be"),
        (lambda: sketch.fit_pca(5), "4 columns"),
        (lambda: sketch.k_curve(5, 2), "above high"),
        (lambda: sketch.k_curve(1, 2, task="pca"), "task must be"),
        (lambda: plan.empty().fit_kmeans(1), "no rows"),
        (lambda: plan.empty().mean, "no rows"),
        (
            lambda: Plan.from_data(rows, collect="cells").sketch(rows).fit_pca(1),
            "collect='moments'",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError):
        sketch.fit_kmeans("two")
    with pytest.raises(TypeError):
        sketch + 1


def test_sums_of_sketches(plan, rows):
    parts = [plan.sketch(part) for part in np.array_split(rows, 4)]
    assert sum(parts) == plan.sketch(rows)
    with pytest.raises(TypeError):
        3 + parts[0]
    model = parts[0].fit_kmeans(2)
    assert plan.empty().estimated_risk(model) is None
