"""Ctrl-C, threads, forks, progress and memory while rows are read."""

import multiprocessing
import os
import re
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from nysketch import CompressiveKMeans, Plan


def python(script: str, **keywords) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, **keywords
    )


SLOW = """
import numpy as np, nysketch, os, pyarrow as pa, signal, sys, threading, time
X = np.random.default_rng(0).normal(size=(3000, 8))
plan = nysketch.Plan.from_data(X, landmarks=400)
endless = np.lib.stride_tricks.as_strided(X, (10**9, 8), (0, 8))
batch = pa.record_batch([X[:, j] for j in range(8)], plan.columns)
pulled = 0
def batches():
    global pulled
    while True:
        pulled += 1
        yield batch
def stream():
    return pa.RecordBatchReader.from_batches(batch.schema, batches())
def stop():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=stop).start()
start = time.time()
try:
    {call}
except KeyboardInterrupt:
    print(time.time() - start)
    before = pulled
    time.sleep(0.3)
    print(pulled - before)
"""


@pytest.mark.parametrize(
    "call",
    [
        "plan.sketch(endless)",
        "nysketch.Plan.from_data(endless)",
        "nysketch.CompressiveKMeans(3).fit(endless)",
        "plan.sketch(X).fit_kmeans(3).predict(endless)",
        "plan.sketch(stream())",
        "nysketch.Plan.from_data(stream)",
        "nysketch.Plan.from_data(X, landmarks=2500).sketch(X).fit_kmeans(90, decoder='clompr')",
    ],
)
def test_ctrl_c_stops_long_work(call):
    # Without this setting, scikit-learn would check all values of the endless array first.
    script = "import sklearn; sklearn.set_config(assume_finite=True)\n" + SLOW.format(call=call)
    done = python(script, timeout=100)
    assert done.returncode == 0, done.stderr
    seconds, pulled_later = (float(x) for x in done.stdout.split())
    # Half a second of work, two seconds of grace for a decoder, and a margin for a busy machine.
    assert seconds < 20 and pulled_later == 0


def test_the_interpreter_goes_on_while_rows_are_read(rows):
    plan = Plan.from_data(rows, landmarks=400)
    many = np.lib.stride_tricks.as_strided(rows, (2_000_000, 4), (0, 8))
    turns, done = 0, threading.Event()

    def count():
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    plan.sketch(many, threads=1)
    done.set()
    counter.join()
    assert turns > 10


def test_threads_share_a_plan_and_a_sketch(rows):
    plan = Plan.from_data(rows, landmarks=50)
    sketch = plan.empty()
    parts = np.array_split(rows, 8)
    workers = [threading.Thread(target=sketch.update, args=(p,)) for p in parts]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sketch == plan.sketch(rows)


def fitted_in_a_child(rows):
    return CompressiveKMeans(3, random_state=0).fit(rows).cluster_centers_


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_after_work_works(rows):
    here = fitted_in_a_child(rows)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for there in pool.map(fitted_in_a_child, [rows, rows]):
            assert np.array_equal(here, there)


def test_progress_is_told_on_stderr(rows, capfd):
    plan = Plan.from_data(rows, verbose=True)
    plan.sketch(rows, verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert re.search(r"planning: 3,000 rows read, [\d,]+/s, \d+\.\d s", err)
    assert re.search(r"sketching: 3,000 rows read", err)
    sketch = plan.sketch(rows)
    sketch.fit_gmm(5, verbose=True)
    sketch.k_curve(2, 4, verbose=True)
    assert re.findall(r"fitting \w+, \d+\.\d s", capfd.readouterr().err)[-1].startswith(
        "fitting kmeans"
    )
    # Choosing this number of landmarks takes longer than a tick.
    Plan.from_data(rows, landmarks=2500, sampling="leverage", verbose=True, warn=False)
    assert "3,000 rows read" in (err := capfd.readouterr().err) and "choosing landmarks" in err
    plan.sketch(rows)
    assert capfd.readouterr() == ("", "")


def test_no_import_of_scikit_learn_for_plans_and_sketches():
    done = python(
        """
        import sys, numpy as np, nysketch
        X = np.arange(20.0).reshape(-1, 2)
        nysketch.Plan.from_data(X).sketch(X).fit_kmeans(2)
        assert not {"sklearn", "matplotlib", "pandas", "pyarrow"} & set(sys.modules)
        print(sorted(dir(nysketch)))
        """
    )
    assert done.returncode == 0, done.stderr
    assert "CompressiveKMeans" in done.stdout


MEMORY = """
import numpy as np, pyarrow as pa, nysketch
from nysketch import CompressiveKMeans, Plan
X = np.random.default_rng(0).normal(size=(1_000_000, 20)).astype(np.float32)
CompressiveKMeans(2).fit(X[:2000])
def peak():  # Not ru_maxrss, which starts at that of the process before.
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
before = peak()
{work}
print((peak() - before) / 1e6)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize(
    ("work", "limit"),
    [
        # Labels of 10^6 rows take 4 MB; the rest is one part per thread.
        ("CompressiveKMeans(10, random_state=0).fit(X)", 50),
        # A stream of ten batches of 80 MB each.
        (
            "batch = pa.record_batch({f'c{j}': np.ascontiguousarray(X[:, j]) for j in range(20)})\n"
            "before = peak()\n"
            "plan = Plan.from_data(batch, landmarks=20)\n"
            "batches = (batch for _ in range(10))\n"
            "plan.sketch(pa.RecordBatchReader.from_batches(batch.schema, batches))",
            100,
        ),
    ],
)
def test_memory_does_not_grow_with_the_rows(work, limit):
    done = python(MEMORY.format(work=work))
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < limit


def test_a_stream_from_a_generator_is_read_on_other_threads(rows):
    """The generator needs the GIL, so the GIL must be released while waiting for it."""
    table = pa.table({f"c{j}": rows[:, j] for j in range(4)})
    plan = Plan.from_data(table, landmarks=30)
    batches = (batch for batch in table.to_batches(max_chunksize=10))
    reader = pa.RecordBatchReader.from_batches(table.schema, batches)
    assert plan.sketch(reader, threads=4) == plan.sketch(rows)


def test_signal_handlers_of_python_run(rows):
    done = python(
        SLOW.replace("except KeyboardInterrupt", "except RuntimeError").format(
            call="signal.signal(signal.SIGINT, lambda *_: (_ for _ in ()).throw(RuntimeError())); "
            "plan.sketch(endless)"
        ),
        timeout=100,
    )
    assert done.returncode == 0 and done.stdout, done.stderr
