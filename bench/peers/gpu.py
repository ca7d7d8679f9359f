"""Time to a model of equal risk on one GPU: nysketch compared with torch and scikit-learn.

    python3 bench/peers/gpu.py [--tables 100000000x20 10000000x128] [--minutes 3.5] [--json FILE]

Requires nysketch, torch and scikit-learn, and installs nothing. Without a GPU it runs on the
processor (try `--small`). Prints aligned tables, and progress to stderr.

Rows are drawn in the memory of the GPU: 50 overlapping Gaussians of unequal shares, one of 0.1 %.
Every method starts from these rows and runs twice. `first` includes one-time costs such as
compilation, and `bits` states whether both runs gave the same bytes (nysketch: sketch and model).
Parts of the last run: `sample` is the work on 200,000 rows (nysketch: copying them to the host and
making the plan; torch: the start), `all rows` the passes over all rows, `fit` learning from the
sketch. Risks are mean squared distances of all rows, added up in doubles by the same function for
all methods; for mixtures, the mean negative log-likelihood of a million other rows.

k-means in torch: products and argmin in chunks; centres by one-hot products or index_add_, the
faster of the two at the best of four chunk sizes, chosen before the clock starts; the best of five
starts by greedy k-means++ on 200,000 rows, then at most 50 Lloyd's iterations over all rows, until
the risk decreases by less than a share of 1e-4. These are eager kernels; fused ones would be faster.

nysketch and its peers run in separate processes, so that a crash does not affect the others.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # Read when scipy is imported.

import argparse
import importlib.metadata
import importlib.util
import json
import math
import platform
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

CLUSTERS, RARE, SEPARATION = 50, 0.001, 5.0  # SEPARATION: a typical distance in deviations.
SEED, OTHER_SEED = 1, 2  # For the rows, and for those that evaluate mixtures.
HELD_OUT = 1_000_000
K, COMPONENTS = 50, 20
TWENTY = range(10, 90, 4)
SAMPLE, FEW = 200_000, 2_000
STARTS, STEPS, PROGRESS = 5, 50, 1e-4
EM_STEPS, EM_PROGRESS, FLOOR = 200, 1e-4, 1e-6  # nysketch's defaults, and scikit-learn's reg_covar.
EM_CHUNK, JUDGE_CHUNK = 1 << 20, 1 << 20
CHUNKS = [1 << power for power in (17, 19, 21, 23)]
SKLEARN_ROWS = 10_000_000
EQUAL = 1e-3  # Relative difference below which risks count as equal.
HOST_ROWS = 10_000_000  # Also sketched on the processor.
GRACE = 20  # Seconds by which a part may exceed its share of the time.
TABLES, SMALL = ["100000000x20", "10000000x128"], ["50000x20", "20000x128"]
PACKAGES = ("nysketch", "torch", "cupy-cuda13x", "scikit-learn", "numpy", "pyarrow")
ABSENT = {"cuML": "cuml", "faiss": "faiss", "cupyx.scipy.cluster": "cupyx.scipy.cluster"}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=TABLES, help="ROWSxCOLUMNS")
    parser.add_argument("--rows", type=int, help="rows of the first table")
    parser.add_argument("--small", action="store_true", help="a quick trial")
    parser.add_argument("--minutes", type=float, default=3.5, help="what comes last is left out")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    args = parser.parse_args()
    tables = SMALL if args.small else args.tables
    try:
        args.tables = [tuple(map(int, table.lower().split("x", 1))) for table in tables]
        args.tables = [(rows, columns) for rows, columns in args.tables]
    except ValueError:
        parser.error(f"--tables: expected ROWSxCOLUMNS, such as 1000000x20, got {tables}")
    if args.rows:
        args.tables[0] = (args.rows, args.tables[0][1])
    return args


# Shared by both kinds of parts. Only parts import torch.


@dataclass
class Found:
    """A model, or models by their k, with its costs."""

    model: object
    parts: dict[str, float]
    bits: dict[str, bytes] = field(default_factory=dict)
    note: str = ""
    trace: list[tuple[float, float]] = field(default_factory=list)


class Clock:
    def __init__(self, until: float) -> None:
        self.until = until

    def left(self) -> float:
        return self.until - time.time()


def synchronize() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def free() -> None:
    """Returns unused memory to the GPU."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def timed(work: Callable, *args):
    """Returns the result, and the seconds until the GPU is done."""
    synchronize()
    start = time.perf_counter()
    found = work(*args)
    synchronize()
    return found, time.perf_counter() - start


def emit(**row) -> None:
    print(json.dumps(row), flush=True)


def measure(clock: Clock, task: str, method: str, learn: Callable, judge: Callable, runs=2) -> None:
    """Runs a method as often as the time allows, and reports the quality of its last model."""
    row, seconds, bits, notes = {"task": task, "method": method}, [], [], []
    try:
        for _ in range(runs):
            if clock.left() <= (seconds[0] if seconds else 0):
                notes.append("no time for a second run" if seconds else "left out: no time")
                break
            found = None  # Frees the model of the previous run.
            found, took = timed(learn)
            seconds.append(took)
            bits.append(found.bits)
        if seconds:
            row |= {"first": seconds[0], "parts": found.parts, "trace": found.trace}
            row["risk"] = judge(found.model)
            notes.insert(0, found.note)
        if len(seconds) == 2:
            other = [name for name in bits[0] if bits[0][name] != bits[1][name]]
            row |= {"second": seconds[1], "same": not other}
            notes += [f"other bytes: {' and '.join(other)}"] if other else []
    except Exception as error:  # A failure of a peer is shown in the table.
        lines = str(error).strip().splitlines() or [""]
        row["failed"] = f"{type(error).__name__}: {lines[0][:160]}"
    row["note"] = "; ".join(filter(None, notes))
    emit(**row)
    found = None
    try:
        free()
    except Exception as error:
        emit(task="note", note=f"the GPU is out of order after {method}: {error}"[:200])


def twenty(fit: Callable, clock: Clock) -> dict:
    """Returns centres for twenty k by `fit`, or for some of them, widely spaced, if time is short."""
    models = {}
    for i in range(len(TWENTY)):
        k = TWENTY[7 * i % len(TWENTY)]
        if clock.left() <= 0:
            break
        models[k] = fit(k)
    return models


def counted(models: dict) -> str:
    """Describes which of the twenty fits were done."""
    if len(models) == len(TWENTY):
        return f"k = {TWENTY[0]}, {TWENTY[1]}, …, {TWENTY[-1]}"
    return f"only k = {', '.join(map(str, sorted(models)))} of twenty: no time"


@contextmanager
def tf32(allowed: bool):
    """Allows or forbids that products of floats round their factors to ten bits."""
    import torch

    products = torch.backends.cuda.matmul
    before, products.allow_tf32 = products.allow_tf32, allowed
    try:
        yield
    finally:
        products.allow_tf32 = before


# Rows, and the quality of models.


class Mixture:
    """Gaussians around centres, one of them rare."""

    def __init__(self, columns: int, device) -> None:
        import torch

        draws = torch.Generator().manual_seed(SEED)  # On the host, so that it is the same on all devices.
        centres = torch.randn(CLUSTERS, columns, generator=draws)
        centres *= SEPARATION / math.sqrt(2 * columns)
        spreads = 0.7 + 0.6 * torch.rand(CLUSTERS, 1, generator=draws)
        shares = 0.2 + torch.rand(CLUSTERS, generator=draws)
        shares[0] = 0
        shares *= (1 - RARE) / shares.sum()
        shares[0] = RARE
        upto = shares.cumsum(0)[:-1]
        self.device = device
        self.centres, self.spreads, self.upto = (t.to(device) for t in (centres, spreads, upto))

    def draw(self, rows: int, seed: int):
        import torch

        draws = torch.Generator(device=self.device).manual_seed(seed)
        X = torch.empty(rows, self.centres.shape[1], device=self.device)
        for x in X.split(1 << 22):
            uniform = torch.rand(len(x), generator=draws, device=self.device)
            which = torch.searchsorted(self.upto, uniform)
            x.normal_(generator=draws).mul_(self.spreads[which]).add_(self.centres[which])
        return X


def risk(X, centres) -> float:
    """Returns the mean squared distance of the rows to the nearest centre, in doubles."""
    import torch

    exact = torch.as_tensor(centres).to(device=X.device, dtype=torch.float64)
    C, total = exact.float(), torch.zeros((), dtype=torch.float64, device=X.device)
    norms = (C * C).sum(1)
    with tf32(False):  # Independent of the setting of the method.
        for x in X.split(JUDGE_CHUNK):
            nearest = torch.addmm(norms, x, C.T, alpha=-2).argmin(dim=1)
            total += (x.double() - exact[nearest]).square_().sum()
    return float(total) / len(X)


def surprise(X, mixture) -> float:
    """Returns the mean negative log-likelihood of the rows, in doubles, for diagonal covariances."""
    import torch

    parts = [torch.as_tensor(t).to(device=X.device, dtype=torch.float64) for t in mixture]
    total = torch.zeros((), dtype=torch.float64, device=X.device)
    linear, quadratic, constant = terms(*parts)
    for x in X.split(JUDGE_CHUNK // 4):
        x = x.double()
        logs = torch.addmm(constant, x, linear.T).addmm_(x * x, quadratic.T)
        total -= logs.logsumexp(dim=1).sum()
    return float(total) / len(X)


def terms(weights, means, variances):
    """Returns the coefficients of the weighted log densities, polynomials of second degree."""
    log_scale = (2 * math.pi * variances).log().sum(1) + (means * means / variances).sum(1)
    return means / variances, -0.5 / variances, weights.log() - 0.5 * log_scale


def joined(arrays) -> bytes:
    """Returns the bytes of some arrays or tensors."""
    import torch

    return b"".join(torch.as_tensor(each).cpu().numpy().tobytes() for each in arrays)


# nysketch.


def ours(X, fit: Callable) -> Found:
    """Makes a plan from a sample, passes over the rows, and calls `fit`, which returns arrays."""
    import nysketch

    def make_plan():
        sample = X[:SAMPLE].cpu().numpy()
        return nysketch.Plan.from_data(sample, clusters=K, seed=0, warn=False)

    plan, planned = timed(make_plan)
    sketch, passed = timed(lambda: plan.empty().update(X))
    model, fitted = timed(fit, sketch)
    file = sketch.to_bytes()
    note = f"{len(plan.landmarks)} landmarks, sketch of {len(file) / 1e3:,.0f} kB"
    parts = {"sample": planned, "all": passed, "fit": fitted}
    if isinstance(model, dict):
        note = counted(model)
    arrays = model.values() if isinstance(model, dict) else model
    return Found(model, parts, {"sketch": file, "model": joined(arrays)}, note)


def our_mixture(sketch):
    model = sketch.fit_gmm(COMPONENTS, covariance="diag", seed=0)
    return model.weights, model.means, model.variances


def our_part(X, held_out: Callable, clock: Clock) -> None:
    def centres(sketch, k: int = K):
        return sketch.fit_kmeans(k, seed=0).centres

    def many(sketch) -> dict:
        return twenty(lambda k: centres(sketch, k), clock)

    each = {"kmeans": lambda s: (centres(s),), "twenty": many, "mixture": our_mixture}
    judges = {"kmeans": lambda model: risk(X, model[0]), "twenty": risks(X)}
    judges["mixture"] = lambda model: surprise(held_out(), model)
    for task in ("kmeans", "mixture", "twenty"):
        runs = 1 if task == "twenty" else 2
        measure(clock, task, "nysketch", lambda t=task: ours(X, each[t]), judges[task], runs)
    on_processor(X, clock)


def risks(X) -> Callable:
    return lambda models: {k: risk(X, centres) for k, centres in models.items()}


def on_processor(X, clock: Clock) -> None:
    """Reports whether the processor gives the same bytes, and its time."""
    rows = min(len(X), HOST_ROWS)
    try:
        import nysketch

        if clock.left() <= 0:
            raise TimeoutError("left out: no time")
        host = X[:rows].cpu().numpy()
        plan = nysketch.Plan.from_data(host[:SAMPLE], clusters=K, seed=0, warn=False)
        there, gpu = timed(lambda: plan.empty().update(X[:rows]))
        here, cpu = timed(lambda: on_host(plan.empty(), host))
        same = "the same bytes" if there.to_bytes() == here.to_bytes() else "OTHER BYTES"
        text = f"{gpu:.3f} s on {X.device.type}, {cpu:.3f} s on {os.cpu_count()} cores, {same}"
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:200]
    emit(task="note", note=f"sketch of the first {rows:,} rows: {text}")


def on_host(sketch, rows):
    try:
        return sketch.update(rows, device="cpu")
    except TypeError:  # A version without this option.
        return sketch.update(rows)


# k-means in torch.


def by_one_hot(x, labels, k: int):
    import torch

    marks = torch.zeros(len(x), k, device=x.device).scatter_(1, labels[:, None], 1.0)
    return marks.T @ x, marks.sum(0)


def by_index_add(x, labels, k: int):
    import torch

    sums = torch.zeros(k, x.shape[1], device=x.device).index_add_(0, labels, x)
    return sums, torch.bincount(labels, minlength=k)


UPDATES = {"one-hot": by_one_hot, "index_add_": by_index_add}


@dataclass
class How:
    """How torch passes over rows."""

    update: str
    chunk: int

    def over(self, X, C):
        """Returns sums and counts of the clusters, and Σ ‖c‖² - 2⟨x, c⟩ over the nearest centres."""
        import torch

        double = {"dtype": torch.float64, "device": X.device}
        k, norms = len(C), (C * C).sum(1)
        sums, counts = torch.zeros(C.shape, **double), torch.zeros(k, **double)
        total = torch.zeros((), **double)
        for x in X.split(self.chunk):
            scores, labels = torch.addmm(norms, x, C.T, alpha=-2).min(dim=1)
            part, count = UPDATES[self.update](x, labels, k)
            sums += part.double()
            counts += count.double()
            total += scores.sum(dtype=torch.float64)
        return sums, counts, total

    @staticmethod
    def fastest(X) -> "How":
        """Returns the fastest on the first rows; reports the time and the bits of each update."""
        few, tried, bits = X[: CHUNKS[-1]], {}, {}
        for update in UPDATES:
            for chunk in [c for c in CHUNKS if c <= len(few)] or CHUNKS[:1]:
                how = How(update, chunk)
                sums, _ = timed(how.over, few, few[:K])
                again, tried[update, chunk] = timed(how.over, few, few[:K])
                bits[update, chunk] = bool((sums[0] == again[0]).all())
        for update in UPDATES:
            seconds, chunk = min((s, c) for (u, c), s in tried.items() if u == update)
            same = "same bits" if bits[update, chunk] else "OTHER BITS"
            took = f"{1e3 * seconds:.1f} ms for {len(few):,} rows in chunks of {chunk:,}"
            emit(task="note", note=f"torch, one iteration with {update}: {took}, {same} twice")
        return How(*min(tried, key=tried.get))


def squares(X, chunk: int) -> float:
    import torch

    return float(sum(x.square().sum(dtype=torch.float64) for x in X.split(chunk)))


def lloyd(X, C, how: How, norms: float):
    """Runs Lloyd's iterations; returns the centres and the history of seconds and risks."""
    import torch

    start, before, trace = time.perf_counter(), math.inf, []
    for _ in range(STEPS):
        sums, counts, total = how.over(X, C)
        means = sums / counts.clamp(min=1)[:, None]
        C = torch.where(counts[:, None] > 0, means, C.double()).float()
        inertia = norms + float(total)
        trace.append((time.perf_counter() - start, inertia / len(X)))
        if before - inertia < PROGRESS * inertia:
            break
        before = inertia
    return C, trace


def plus_plus(S, k: int, draws):
    """Greedy k-means++ as in scikit-learn: the best of several rows drawn by squared distance."""
    import torch

    trials = 2 + int(math.log(k))
    first = torch.randint(len(S), (1,), generator=draws, device=S.device)
    C = [S[first][0]]
    near = (S - C[0]).square().sum(1)
    for _ in range(k - 1):
        noise = torch.empty(trials, len(S), device=S.device).exponential_(generator=draws)
        rows = S[(near / noise).argmax(dim=1)]
        kept = torch.stack([torch.minimum(near, (S - row).square().sum(1)) for row in rows])
        best = kept.sum(1).argmin()
        C.append(rows[best])
        near = kept[best]
    return torch.stack(C)


def starts(S, k: int, seed: int, how: How):
    """Returns centres from each of five starts on a sample, with their risks, best first."""
    import torch

    draws = torch.Generator(device=S.device).manual_seed(seed)
    norms = squares(S, how.chunk)
    found = [lloyd(S, plus_plus(S, k, draws), how, norms) for _ in range(STARTS)]
    return sorted(found, key=lambda each: each[1][-1][1])


def by_torch(X, k: int, how: How, sample: int, everything: bool) -> Found:
    """Runs k-means on a sample, then over all rows if `everything` is set."""
    best, sampled = timed(starts, X[:sample], k, 0, how)
    C, parts, note, trace = best[0][0], {"sample": sampled}, "", []
    if everything:
        (C, trace), parts["all"] = timed(lambda: lloyd(X, C, how, squares(X, how.chunk)))
        summed = parts["all"] - trace[-1][0]  # Squares of the rows.
        trace = [(sampled + summed + seconds, risk) for seconds, risk in trace]
        note = f"{len(trace)} iterations, {how.update}, chunks of {how.chunk:,}"
    return Found(C, parts, {"model": joined([C])}, note, trace)


def many_by_torch(X, how: How, everything: bool, clock: Clock) -> Found:
    def fit(k: int):
        found = by_torch(X, k, how, SAMPLE, everything)
        for part, seconds in found.parts.items():
            parts[part] = parts.get(part, 0.0) + seconds
        return found.model

    parts: dict[str, float] = {}
    models = twenty(fit, clock)
    return Found(models, parts, note=counted(models))


# EM in torch, and in scikit-learn.


def of_clusters(S, C):
    """Returns the mixture of the clusters around centres."""
    import torch

    labels = torch.addmm((C * C).sum(1), S, C.T, alpha=-2).argmin(dim=1)
    marks = torch.zeros(len(S), len(C), dtype=torch.float64, device=S.device)
    marks.scatter_(1, labels[:, None], 1.0)
    S, counts = S.double(), marks.sum(0).clamp(min=1)
    means = marks.T @ S / counts[:, None]
    variances = marks.T @ (S * S) / counts[:, None] - means * means + FLOOR
    return counts / counts.sum(), means, variances


def em(X, mixture, clock: Clock):
    """Runs EM with diagonal covariances; returns the mixture, the log-likelihood before, steps."""
    import torch

    before = -math.inf
    for step in range(1, EM_STEPS + 1):
        linear, quadratic, constant = (t.float() for t in terms(*mixture))
        double = {"dtype": torch.float64, "device": X.device}
        counts, total = torch.zeros(len(constant), **double), torch.zeros((), **double)
        first, second = torch.zeros(linear.shape, **double), torch.zeros(linear.shape, **double)
        for x in X.split(EM_CHUNK):
            squared = x * x
            logs = torch.addmm(constant, x, linear.T).addmm_(squared, quadratic.T)
            norm = logs.logsumexp(dim=1, keepdim=True)
            shares = logs.sub_(norm).exp_()
            counts += shares.sum(0, dtype=torch.float64)
            first += (shares.T @ x).double()
            second += (shares.T @ squared).double()
            total += norm.sum(dtype=torch.float64)
        counts = counts.clamp(min=1e-9)
        means = first / counts[:, None]
        variances = second / counts[:, None] - means * means + FLOOR
        mixture, likelihood = (counts / counts.sum(), means, variances), float(total) / len(X)
        if likelihood - before < EM_PROGRESS or clock.left() <= 0:
            break
        before = likelihood
    return mixture, likelihood, step


def mixture_by_torch(X, how: How, everything: bool, clock: Clock) -> Found:
    """Runs EM from five starts on a sample, then over all rows if `everything` is set."""

    def on_sample():
        S = X[:SAMPLE]
        found = starts(S, COMPONENTS, 0, how)
        return max((em(S, of_clusters(S, C), clock) for C, _ in found), key=lambda e: e[1])

    (mixture, _, steps), sampled = timed(on_sample)
    parts = {"sample": sampled}
    if everything:
        (mixture, _, steps), parts["all"] = timed(em, X, mixture, clock)
    return Found(mixture, parts, {"model": joined(mixture)}, f"{steps} iterations")


def mixture_by_sklearn(X, how: How) -> Found:
    """Runs scikit-learn's EM on tensors, from the best k-means of a sample."""
    import sklearn
    from sklearn.mixture import GaussianMixture

    version = sklearn.__version__
    if tuple(map(int, version.split(".")[:2])) < (1, 8):
        raise RuntimeError(f"scikit-learn {version} does not fit mixtures to tensors; 1.8 does")

    def start():
        C = starts(X[:SAMPLE], COMPONENTS, 0, how)[0][0]
        weights, means, variances = (t.float() for t in of_clusters(X[:SAMPLE], C))
        return {"weights_init": weights, "means_init": means, "precisions_init": 1 / variances}

    options, sampled = timed(start)
    options |= {"covariance_type": "diag", "reg_covar": FLOOR, "random_state": 0}
    options |= {"tol": EM_PROGRESS, "max_iter": EM_STEPS, "init_params": "random_from_data"}
    with sklearn.config_context(array_api_dispatch=True):
        found, passed = timed(GaussianMixture(COMPONENTS, **options).fit, X)
    mixture = found.weights_, found.means_, found.covariances_
    parts = {"sample": sampled, "all": passed}
    return Found(mixture, parts, {"model": joined(mixture)}, f"{found.n_iter_} iterations")


def peers_part(X, held_out: Callable, clock: Clock) -> None:
    how = How.fastest(X)
    judge, few = (lambda C: risk(X, C)), f"{min(SAMPLE, len(X)):,}"
    for name, fast in {"float32": False, "TF32": True}.items():
        with tf32(fast):
            learn = lambda: by_torch(X, K, how, SAMPLE, True)  # noqa: E731
            measure(clock, "kmeans", f"torch, all rows, {name}", learn, judge)
    for rows in (FEW, SAMPLE):
        learn = lambda n=rows: by_torch(X, K, how, n, False)  # noqa: E731
        measure(clock, "kmeans", f"torch, {min(rows, len(X)):,} rows", learn, judge)
    absent(ABSENT)
    nats = lambda mixture: surprise(held_out(), mixture)  # noqa: E731
    for everything, name in {False: f"torch EM, {few} rows", True: "torch EM, all rows"}.items():
        learn = lambda every=everything: mixture_by_torch(X, how, every, clock)  # noqa: E731
        measure(clock, "mixture", name, learn, nats)
    some = min(SKLEARN_ROWS, len(X))
    learn = lambda: mixture_by_sklearn(X[:some], how)  # noqa: E731
    measure(clock, "mixture", f"scikit-learn, {some:,} rows", learn, nats)
    learn = lambda: many_by_torch(X, how, False, clock)  # noqa: E731
    measure(clock, "twenty", f"torch, {few} rows", learn, risks(X), runs=1)
    with tf32(True):
        learn = lambda: many_by_torch(X, how, True, clock)  # noqa: E731
        measure(clock, "twenty", "torch, all rows, TF32", learn, risks(X), runs=1)


def absent(modules: dict[str, str]) -> None:
    """Reports which libraries with k-means on GPUs are installed; none is run."""

    def there(module: str) -> bool:
        try:
            return importlib.util.find_spec(module) is not None
        except ImportError:
            return False

    found = [name for name, module in modules.items() if there(module)]
    named = f"{', '.join(found)}, not run" if found else "none"
    emit(task="note", note=f"k-means of other libraries ({', '.join(modules)}): {named}")


def part(job: dict) -> None:
    """Runs one part, in its own process; prints its rows to stdout as JSON."""
    import torch

    warnings.simplefilter("ignore")
    clock, (rows, columns) = Clock(job["until"]), job["table"]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "no GPU"
    versions = f"CUDA {torch.version.cuda}" if device.type == "cuda" else ""
    mixture = Mixture(columns, device)
    X, seconds = timed(mixture.draw, rows, SEED)
    # Both parts must work on the same rows.
    emit(task="about", gpu=name, versions=versions, drawn=seconds, squares=squares(X, JUDGE_CHUNK))
    run = our_part if job["part"] == "nysketch" else peers_part
    run(X, lambda: mixture.draw(min(HELD_OUT, rows), OTHER_SEED), clock)


# Running the parts one after another, and their tables.


def run_part(table: tuple[int, int], name: str, until: float) -> list[dict]:
    """Returns the rows of a part, possibly incomplete if the time runs out."""
    job = {"table": table, "part": name, "until": until}
    line = [sys.executable, str(Path(__file__).resolve()), "--job", json.dumps(job)]
    rows, tasks = [], []
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        end = threading.Timer(max(0.0, until - time.time()) + GRACE, process.kill)
        end.start()
        for text in process.stdout:
            if text.startswith("{"):
                rows.append(json.loads(text))
                tasks.append(rows[-1]["task"])
                shown = rows[-1].get("method") or rows[-1].get("note") or "rows are there"
                print(f"  {name}: {rows[-1]['task']}: {shown}", file=sys.stderr, flush=True)
        status = process.wait()
        end.cancel()
    if status:
        why = f"ended with status {status} after {tasks[-1] if tasks else 'nothing'}"
        rows.append({"task": "note", "note": f"{name}: {why}; what follows there is left out"})
    return rows


def number(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.3f}"


def least(rows: list[dict], task: str):
    """Returns the smallest risk of the task, with which the others are compared."""
    found = [row["risk"] for row in rows if row["task"] == task and "risk" in row]
    if task == "twenty":
        shared = set.intersection(*map(set, found)) if found else set()
        best = {k: min(each[k] for each in found) for k in shared}
        return lambda risks: (
            f"×{sum(risks[k] / best[k] for k in best) / len(best):.4f}" if best else "–"
        )
    if task == "mixture":
        return lambda nats: f"+{nats - min(found):.4f}"
    return lambda risk: f"×{risk / min(found):.4f}"


def reached(row: dict, rows: list[dict]) -> str:
    """Returns when the iterations of the last run fell to the risk of nysketch."""
    ours = [r["risk"] for r in rows if r["method"] == "nysketch" and "risk" in r]
    if not ours or not row.get("trace"):
        return ""
    enough = (1 + EQUAL) * ours[0]
    when = next((seconds for seconds, risk in row["trace"] if risk <= enough), None)
    return "never nysketch's risk" if when is None else f"nysketch's risk after {when:.3f} s"


HEAD = ["method", "first s", "second s", "sample", "all rows", "fit", "risk", "bits", ""]
TITLES = {
    "kmeans": f"k-means, k = {K}; risk over the least",
    "mixture": f"Gaussian mixture, {COMPONENTS} components, diagonal; nats per row above the least",
    "twenty": "k-means for twenty k; mean risk over the least, for the k that all have",
}


def aligned(lines: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    last = len(widths) - 1

    def cell(at: int, text: str) -> str:
        return text.ljust(widths[at]) if at in (0, last) else text.rjust(widths[at])

    return "\n".join("  ".join(map(cell, range(last + 1), line)).rstrip() for line in lines)


def section(task: str, every: list[dict]) -> str:
    rows, lines = [row for row in every if row["task"] == task], [HEAD]
    show = least(every, task)
    for row in rows:
        parts = row.get("parts", {})
        cells = [row["method"], number(row.get("first")), number(row.get("second"))]
        cells += [number(parts.get(name)) for name in ("sample", "all", "fit")]
        cells.append(show(row["risk"]) if "risk" in row else "–")
        cells.append({True: "same", False: "other"}.get(row.get("same"), "–"))
        extra = [row.get("failed"), row.get("note"), reached(row, rows)]
        lines.append([*cells, "; ".join(filter(None, extra))])
    return f"{TITLES[task]}\n{aligned(lines)}\n"


def document(table: tuple[int, int], rows: list[dict]) -> str:
    about = [row for row in rows if row["task"] == "about"]
    drawn = f", drawn in {about[0]['drawn']:.1f} s" if about else ""
    out = [f"{table[0]:,} rows × {table[1]} columns, float32{drawn}\n"]
    if len({row["squares"] for row in about}) > 1:
        out.append("THE PARTS HAD DIFFERENT ROWS: their sums of squares differ\n")
    out += [section(task, rows) for task in TITLES if any(row["task"] == task for row in rows)]
    out += [f"- {row['note']}" for row in rows if row["task"] == "note"]
    return "\n".join(out) + "\n"


def versions(results: list[dict]) -> str:
    about = [row for result in results for row in result["rows"] if row["task"] == "about"]
    found = [about[0]["gpu"], about[0]["versions"]] if about else []
    for package in PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {package}")
    return ", ".join([*filter(None, found), f"Python {platform.python_version()}"])


def main() -> None:
    args = arguments()
    if args.job:
        return part(json.loads(args.job))
    deadline, results = time.time() + 60 * args.minutes, []
    # The first table has the larger share of the time; unused time goes to the parts after it.
    parts = [(table, name) for table in args.tables for name in ("nysketch", "peers")]
    shares = [3, 4] + [2] * (len(parts) - 2)
    for at, (table, name) in enumerate(parts):
        if name == "nysketch":
            results.append({"table": table, "rows": []})
        share = shares[at] / sum(shares[at:])
        until = time.time() + share * (deadline - time.time())
        if deadline - time.time() < 5:
            note = f"{name}: left out, the {args.minutes:g} minutes are over"
            results[-1]["rows"].append({"task": "note", "note": note})
        else:
            print(f"{table[0]:,} × {table[1]}, {name}", file=sys.stderr, flush=True)
            results[-1]["rows"] += run_part(table, name, until)
        if name == "peers":
            print(document(table, results[-1]["rows"]), flush=True)
    print(versions(results))
    if args.json:
        text = json.dumps({"versions": versions(results), "results": results}, indent=1)
        args.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
