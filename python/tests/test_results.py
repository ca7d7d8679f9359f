"""Results equal those of the command, and tables for notebooks escape their contents."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest

import nysketch
from nysketch import Model, Plan, Sketch, results


@pytest.fixture(scope="module")
def days(tmp_path_factory, rows):
    """Make three days of one plan, with column c1 shifted on the third, and models of the first."""
    folder = tmp_path_factory.mktemp("days")
    plan = Plan.from_data(rows[:1000], landmarks=60)
    plan.save(folder / "plan.nys")
    sketches = []
    for day in range(3):
        part = rows[1000 * day : 1000 * (day + 1)] + (day == 2) * np.array([0.0, 1.0, 0.0, 0.0])
        sketch = plan.sketch(part)
        sketch.save(folder / f"{day}.nys")
        sketches.append(sketch)
    sketches[0].fit_gmm(5).save(folder / "mixture.json")
    sketches[0].fit_kmeans(5).save(folder / "centres.json")
    return folder


def asked(command, *line):
    return json.loads(command(*line, "--json"))


@pytest.mark.parametrize("name", ["plan.nys", "0.nys"])
def test_inspect_is_that_of_the_command(days, command, name):
    path = str(days / name)
    said = asked(command, "inspect", path)
    assert nysketch.inspect(path).to_dict() == said
    # In memory it has no file.
    del said["file"]
    assert nysketch.inspect(nysketch.read(path)).to_dict() == said


def test_inspect_with_model_and_theory_is_that_of_the_command(days, command):
    path, mixture = str(days / "0.nys"), str(days / "mixture.json")
    line = ("--theory", "-k", 5, "--delta", 0.05, "--secants", 60)
    said = asked(command, "inspect", path, "--model", mixture, *line)
    found = nysketch.inspect(path, mixture, theory=True, k=5, delta=0.05, secants=60)
    assert found.to_dict() == said
    assert isinstance(found.model, results.Explanation) and isinstance(found.theory, results.Theory)
    sketch, model = Sketch.load(path), Model.load(mixture)
    assert sketch.explain(model) == found.model
    assert sketch.theory(5, delta=0.05, secants=60) == found.theory
    assert found.model.explained and found.theory["lambda"] > 0


def test_inspect_refuses_what_cannot_be_told(days):
    plan, sketch = Plan.load(days / "plan.nys"), Sketch.load(days / "0.nys")
    for what in (plan, plan.empty()):
        with pytest.raises(ValueError, match="theory needs a sketch that has rows"):
            nysketch.inspect(what, theory=True)
    with pytest.raises(ValueError, match="k goes with theory=True"):
        nysketch.inspect(sketch, k=3)
    with pytest.raises(ValueError, match="model must be a mixture"):
        sketch.explain(Model.load(days / "centres.json"))
    with pytest.raises(ValueError, match="delta must be between 0 and 1"):
        sketch.theory(delta=2.0)
    with pytest.raises(ValueError, match="lambda_ must be above 0"):
        sketch.theory(lambda_=0.0)
    with pytest.raises(ValueError, match="is a model"):
        nysketch.inspect(days / "centres.json")
    with pytest.raises(TypeError, match="Plan or a Sketch"):
        nysketch.inspect(3)


def test_diff_is_that_of_the_command(days, command):
    a, b = str(days / "0.nys"), str(days / "2.nys")
    said = asked(command, "diff", a, b, "--top", 3, "--draws", 199, "--seed", 4, "--level", 0.01)
    assert said.pop("plot") is None
    found = nysketch.diff(a, b, top=3, draws=199, seed=4, level=0.01)
    assert found.to_dict() == said
    assert found.drift and found.columns[0].column == "c1" and len(found.cells) == 3
    in_memory = nysketch.diff(Sketch.load(a), Sketch.load(b), draws=199, seed=4)
    assert in_memory.p_value == found.p_value and in_memory.file is None
    # Without `top`, all landmarks are returned.
    assert len(in_memory.landmarks) == 60


def test_diff_of_many_is_that_of_the_command(days, command):
    files = [str(days / f"{day}.nys") for day in range(3)]
    said = asked(command, "diff", "--against", files[0], *files[1:])
    del said["plot"]
    found = nysketch.diff(files[0], files[1:], top=5)
    assert found.to_dict() == said
    assert [day.drift for day in found.sketches] == [False, True]
    named = nysketch.diff(files[0], {"tuesday": files[1], "wednesday": Sketch.load(files[2])})
    assert [day.file for day in named.sketches] == ["tuesday", "wednesday"]


def test_diff_refuses_what_cannot_be_compared(days, rows):
    a = Sketch.load(days / "0.nys")
    with pytest.raises(ValueError, match="different plans"):
        nysketch.diff(a, Plan.from_data(rows, landmarks=20).sketch(rows))
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        nysketch.diff(a, a, level=2.0)
    with pytest.raises(ValueError, match="draws must be between"):
        nysketch.diff(a, a, draws=1)
    with pytest.raises(TypeError, match="expected a Sketch"):
        nysketch.diff(a, [3])
    plan = Plan.from_data(rows, landmarks=20, collect="kernel")
    parts = [plan.sketch(part) for part in np.array_split(rows, 2)]
    assert nysketch.diff(*parts).no_test == "the sketches keep no cells (collect='cells')"


def test_the_report_is_that_of_the_command(days, command, tmp_path):
    files = [str(days / name) for name in ("2.nys", "mixture.json", "0.nys")]
    command("report", *files[:2], "--against", files[2], "-o", tmp_path / "theirs.html")
    html = nysketch.report(*files, path=tmp_path / "ours.html")
    assert html == (tmp_path / "theirs.html").read_text("utf-8")
    assert html == (tmp_path / "ours.html").read_text("utf-8")
    sketch = Sketch.load(files[0])
    assert "<title>rows &lt;3</title>" in nysketch.report(sketch, name="rows <3")
    models = [sketch.fit_kmeans(2), sketch.fit_kmeans(3)]
    page = nysketch.report(sketch, models)
    assert page.count('<details class="model"') == 2
    command("report", "--against", files[2], days / "1.nys", files[0], "-o", tmp_path / "time.html")
    days_of_files = [days / "1.nys", files[0]]
    assert nysketch.report(days_of_files, baseline=files[2]) == (tmp_path / "time.html").read_text(
        "utf-8"
    )
    named = {"monday": sketch, "tuesday": sketch}
    assert "tuesday" in nysketch.report(named, baseline=files[2])
    with pytest.raises(ValueError, match="give one"):
        nysketch.report(days_of_files)
    with pytest.raises(ValueError, match="needs a sketch"):
        nysketch.report([])
    with pytest.raises(ValueError, match="has no rows"):
        nysketch.report(sketch.plan.empty())
    with pytest.raises(ValueError, match="most_clusters must be between 3 and 200"):
        nysketch.report(sketch, most_clusters=1)
    with pytest.raises(FileNotFoundError):
        nysketch.report(sketch, path=tmp_path / "none" / "r.html")


def test_read_opens_every_file(days, tmp_path):
    assert isinstance(nysketch.read(days / "plan.nys"), Plan)
    assert nysketch.read(str(days / "0.nys")) == Sketch.load(days / "0.nys")
    assert isinstance(nysketch.read(days / "mixture.json"), Model)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="x.csv"):
        nysketch.read(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError):
        nysketch.read(tmp_path / "none.nys")


def test_results_are_read_only_mappings(days):
    found = nysketch.inspect(days / "0.nys")
    assert found["rows"] == found.rows == 1000 and "rows" in dir(found)
    assert dict(found)["kind"] == "sketch" and len(found) == len(list(found))
    for change in ("rows", "new"):
        with pytest.raises(AttributeError, match="read-only"):
            setattr(found, change, 1)
    with pytest.raises(AttributeError, match="no 'none'"):
        _ = found.none
    assert pickle.loads(pickle.dumps(found)) == found
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert repr(found).startswith("Inspection(kind='sketch', rows=1000, skipped=0, columns=('c0', ")


EVIL = "<script>alert(1)</script>"


def test_tables_escape_what_they_show():
    rng = np.random.default_rng(0)
    table = pa.table({EVIL: rng.normal(size=500), "x&y": rng.normal(size=500)})
    plan = Plan.from_data(table, landmarks=30)
    sketch = plan.sketch(table)
    curve = sketch.k_curve(2, 12)
    shown = [
        plan,
        sketch,
        sketch.fit_gmm(2),
        sketch.fit_kmeans(12),
        sketch.fit_pca(2),
        curve,
        nysketch.inspect(sketch, sketch.fit_gmm(1), theory=True, k=2),
        nysketch.diff(sketch, sketch),
        nysketch.diff(sketch, {EVIL: sketch}),
        Plan.from_data(table, features="fourier", frequencies=10),
    ]
    for thing in shown:
        html = thing._repr_html_()
        assert "<script" not in html and "<table>" in html, thing
        assert html.count("<table>") == html.count("</table>")
        if thing is not curve:
            assert "&lt;script&gt;" in html and "x&amp;y" in html
    page = nysketch.report(sketch, name=EVIL)
    # The only script is the page's own.
    assert page.count("<script") == 1 and "&lt;script&gt;" in page
    assert f"<td>{curve.suggested}</td>" in curve._repr_html_()


def test_landmarks_by_themselves(rows, command, tmp_path):
    np.save(tmp_path / "x.npy", rows)
    line = ("plan", tmp_path / "x.npy", "-o", tmp_path / "p.nys")
    command(*line, "--landmarks", "auto", "--clusters", 8)
    with pytest.warns(UserWarning, match="129 landmarks: .* for k = 8 clusters in d = 4 columns"):
        plan = Plan.from_data(rows, landmarks="auto", clusters=8)
    assert plan.to_bytes() == (tmp_path / "p.nys").read_bytes()
    # Ten landmarks per cluster, if that is more than 400.
    assert len(Plan.from_data(rows, clusters=50).landmarks) == 500
    with pytest.raises(ValueError, match="clusters"):
        Plan.from_data(rows, clusters=0)


def test_bandwidths_are_found_by_the_digits_that_are_shown(days):
    sketch = Sketch.load(days / "0.nys")
    for sigma2 in sketch.plan.bandwidths:
        shown = float(f"{sigma2:.4g}")
        assert (sketch.embedding(bandwidth=shown) == sketch.embedding(bandwidth=sigma2)).all()
        assert sketch.theory(2, bandwidth=shown, secants=9).bandwidth == sigma2
    with pytest.raises(ValueError, match="bandwidth must be one of the sketch's"):
        sketch.embedding(bandwidth=1e9)


def test_constraints_go_with_pursuit(days):
    sketch = Sketch.load(days / "0.nys")
    with pytest.raises(ValueError, match="separation must be used with decoder='clompr'"):
        sketch.fit_kmeans(2, separation=1.0)
    sketch.fit_kmeans(2, separation=1.0, decoder="clompr")


def run(*line, **options):
    return subprocess.run(
        [sys.executable, "-m", "nysketch", *map(str, line)],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def test_the_command_comes_with_the_package(days, command):
    path = days / "0.nys"
    assert run("inspect", path).stdout == command("inspect", path)
    script = os.path.join(os.path.dirname(sys.executable), "nysketch")
    said = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
    assert said == f"nysketch {nysketch.__version__}\n"
    assert run("man").stdout == command("man")
    assert run("inspect").returncode == 2
    failed = run("inspect", "none.nys")
    assert failed.returncode == 1 and failed.stderr.startswith("error: cannot read none.nys")
    assert "Traceback" not in failed.stderr


def test_the_command_runs_inside_a_program(days, capfd):
    from nysketch._core import main

    before = signal.getsignal(signal.SIGINT)
    assert main(["nysketch", "inspect", str(days / "0.nys"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["rows"] == 1000
    assert main(["nysketch", "inspect", "none.nys"]) == 1
    assert main(["nysketch", "nonsense"]) == 2
    assert "nonsense" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


LONG = ["generate", "gmm", "--rows", "400000000", "--dims", "50", "-o", "x.npy"]
LONG += ["--clusters", "9"]
INSIDE = f"""
import sys
from nysketch._core import main
try:
    main(["nysketch", *{LONG!r}])
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(7)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("line", "code", "out"),
    # The program ends by the signal, and code inside Python gets an exception.
    [(["-m", "nysketch", *LONG], -signal.SIGINT, ""), (["-c", INSIDE], 7, "interrupted\n")],
    ids=["program", "inside"],
)
def test_ctrl_c_stops_the_command(line, code, out, tmp_path):
    process = subprocess.Popen(
        [sys.executable, *line],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Wait until it has begun to write.
    end = time.monotonic() + 60
    while not any(tmp_path.iterdir()) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (code, out)
    assert not (tmp_path / "x.npy").exists()
