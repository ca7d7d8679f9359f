"""The methods of the benchmark. As a program it runs one of them, in a separate process.

The job is JSON on the command line. Seconds, peak memory and the bytes to keep are printed to stdout;
the model, in the table's own units, is written to the file named in the job.
"""

import importlib
import json
import os
import resource
import sys
import time

# Options of `nysketch sketch`.
CELLS_100, CELLS_1000 = "nysketch, cells at 100 landmarks", "nysketch, cells at 1000 landmarks"
DEFAULTS = "nysketch, defaults"
SKETCHES = {
    CELLS_100: ["--collect", "cells", "--landmarks", "100"],
    CELLS_1000: ["--collect", "cells", "--landmarks", "1000"],
    DEFAULTS: [],
}
MEMORY_LIMIT = 16 * 10**9
OUR_PASS, NUMPY_PASS = "nysketch sketch --plan, from the file", "NumPy, from memory"
BANDWIDTH, PASS_LANDMARKS = 20.0, 200


def kmeans(X, k, kind="KMeans", **options):
    from sklearn import cluster

    found = getattr(cluster, kind)(k, random_state=0, **options).fit(X)
    return {"centres": found.cluster_centers_}


def birch(X, k):
    """Runs Birch with a threshold of 0.9 times the root of the risk of k-means on 10,000 rows."""
    import numpy as np
    from sklearn.cluster import Birch, KMeans

    sample = X[np.random.default_rng(0).choice(len(X), 10_000, replace=False)]
    radius = (KMeans(k, n_init=1, random_state=0).fit(sample).inertia_ / len(sample)) ** 0.5
    labels = Birch(threshold=0.9 * radius, n_clusters=k).fit(X).labels_
    sums = np.column_stack([np.bincount(labels, column, k) for column in X.T])
    return {"centres": sums / np.bincount(labels, minlength=k)[:, None]}


def faiss(X, k, **options):
    from faiss import Kmeans

    method = Kmeans(X.shape[1], k, **options)
    method.train(X)
    return {"centres": method.centroids}


def mixture(X, k):
    from sklearn.mixture import GaussianMixture

    found = GaussianMixture(k, covariance_type="diag", random_state=0).fit(X)
    return {"weights": found.weights_, "means": found.means_, "variances": found.covariances_}


def pycle(X, k, solver="CLOMP_CKM"):
    """Runs pycle with 10·k·d frequencies, scaled by 2 % of the rows, as in its demos."""
    import numpy as np
    import pycle.compressive_learning as cl
    import pycle.sketching as sk

    np.random.seed(0)
    n, d = X.shape
    sigma = sk.estimate_Sigma(X, 200, c=10, n0=n // 50)
    frequencies = sk.drawFrequencies("AdaptedRadius", d, 10 * k * d, sigma)
    features = sk.SimpleFeatureMap("ComplexExponential", frequencies)
    sketch = sk.computeSketch(X, features)
    bounds = np.array([X.min(axis=0), X.max(axis=0)], np.float64)
    found = getattr(cl, solver)(features, k, bounds, sketch)
    found.fit_once()
    weights, atoms = found.current_sol
    model = {"kept": sketch.nbytes, "weights": weights}
    if solver == "CLOMP_CKM":
        return model | {"centres": atoms}
    return model | {"means": atoms[:, :d], "variances": atoms[:, d:]}


# Peers: the function, its options, and the modules to import before the clock starts.
KMEANS, MINIBATCH = "scikit-learn KMeans", "scikit-learn MiniBatchKMeans"
MIXTURE, PYCLE_MIXTURE = "scikit-learn GaussianMixture", "pycle CLOMP_dGMM"
PYCLE = ["pycle.sketching", "pycle.compressive_learning"]
PEERS = {
    KMEANS: (kmeans, {"n_init": 1}, ["sklearn.cluster"]),
    MINIBATCH: (kmeans, {"kind": "MiniBatchKMeans"}, ["sklearn.cluster"]),
    "scikit-learn Birch": (birch, {}, ["sklearn.cluster"]),
    "faiss.Kmeans, defaults": (faiss, {}, ["faiss"]),
    "faiss.Kmeans, all rows": (faiss, {"max_points_per_centroid": 10**9}, ["faiss"]),
    "pycle CLOMP_CKM": (pycle, {}, PYCLE),
    MIXTURE: (mixture, {}, ["sklearn.mixture"]),
    PYCLE_MIXTURE: (pycle, {"solver": "CLOMP_dGMM"}, PYCLE),
}


def of(task: str, k: int) -> list[str]:
    """Returns the names of the methods for a task."""
    sketches = [CELLS_100, DEFAULTS] + [CELLS_1000] * (k >= 100)
    if task == "pass":
        return [NUMPY_PASS, OUR_PASS]
    if task == "gmm":
        return [*sketches, MIXTURE, PYCLE_MIXTURE]
    return sketches + [name for name in PEERS if name not in (MIXTURE, PYCLE_MIXTURE)]


def left_out(method: str, rows: int, k: int, quick: bool) -> str:
    """Returns the reason why a method is not run; empty if it is."""
    if not method.startswith("pycle") or (rows == 10**6 and k == 10):
        return ""
    if quick:
        return "pycle is not part of the quick run"
    return "pycle is run only with 10⁶ rows and k = 10"


def by_command(command: str, *arguments: object) -> dict:
    """Runs the command. This process is small, so the peak memory is the command's."""
    line = [command, *map(str, arguments), "-q"]
    start = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(command, line, os.environ, file_actions=quiet)
    _, status, used = os.wait4(process, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(line)}")
    times = {"wall": time.perf_counter() - start, "cpu": used.ru_utime + used.ru_stime}
    return times | {"peak": used.ru_maxrss * 1024}


def ours(job: dict) -> dict:
    sketch, threads = job["model"] + ".nys", ["--threads", job["threads"]]
    options = SKETCHES[job["method"]] + ["--scale", "standard"] * job["scaled"]
    if job["exclude"]:
        options += ["--exclude", job["exclude"]]
    one = by_command(job["command"], "sketch", job["path"], *options, *threads, "-o", sketch)
    fit = ["fit", job["task"], sketch, "-k", job["k"], *threads, "-o", job["model"]]
    two = by_command(job["command"], *fit)
    times = {x: one[x] + two[x] for x in ("wall", "cpu")} | {"learn": two["cpu"]}
    return times | {"peak": max(one["peak"], two["peak"]), "kept": os.path.getsize(sketch)}


def since(wall: float, cpu: float) -> dict:
    """Returns wall and CPU seconds, and the peak memory of this process."""
    times = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    with open("/proc/self/status") as status:
        return times | {"peak": int(status.read().split("VmHWM:")[1].split()[0]) * 1024}


def peer(job: dict) -> dict:
    """Measures a peer from the start of reading the file to the model."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    pa.set_cpu_count(job["threads"])
    method, options, modules = PEERS[job["method"]]
    for module in modules + ["sklearn.preprocessing"] * job["scaled"]:
        importlib.import_module(module)
    start = time.perf_counter(), time.process_time()
    # Uses the least memory, at the same speed.
    file = pq.ParquetFile(job["path"], pre_buffer=False, buffer_size=2**16)
    columns = [c for c in file.schema_arrow.names if c != job["exclude"]]
    X, done = np.empty((file.metadata.num_rows, len(columns)), np.float32), 0
    for batch in file.iter_batches(2**16, columns=columns):
        X[done : done + len(batch)] = np.column_stack(batch.columns)
        done += len(batch)
    if job["scaled"]:
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler(copy=False)
        X = scaler.fit_transform(X)
    read = time.process_time()
    model = method(X, job["k"], **options)
    result = since(*start) | {"kept": model.pop("kept", X.nbytes)}
    result["learn"] = time.process_time() - read
    if job["scaled"]:
        model["centres"] = model["centres"] * scaler.scale_ + scaler.mean_
    with open(job["model"], "w") as out:
        json.dump({name: value.tolist() for name, value in model.items()}, out)
    return result


def numpy_pass(job: dict) -> dict:
    """Computes kernel means at some rows, from an array in memory."""
    import numpy as np

    X = np.load(job["path"])
    landmarks = np.ascontiguousarray(X[:: len(X) // PASS_LANDMARKS][:PASS_LANDMARKS])
    start, sums = (time.perf_counter(), time.process_time()), np.zeros(PASS_LANDMARKS)
    halves = 0.5 * (landmarks**2).sum(axis=1)
    for i in range(0, len(X), 8192):
        block = X[i : i + 8192]
        logs = block @ landmarks.T
        logs -= halves
        logs -= 0.5 * (block**2).sum(axis=1, keepdims=True)
        logs /= BANDWIDTH
        sums += np.exp(logs, out=logs).sum(axis=0)
    sums /= len(X)
    return since(*start)


def our_pass(job: dict) -> dict:
    """Computes the same sums exactly, from the file, with an existing plan."""
    plan, threads = job["model"] + ".plan.nys", ["--threads", job["threads"]]
    options = ["--landmarks", PASS_LANDMARKS, "--bandwidth", BANDWIDTH, "--collect", "kernel"]
    by_command(job["command"], "plan", job["path"], *options, "-o", plan)
    rest = ["--plan", plan, "-o", job["model"] + ".nys", *threads]
    return by_command(job["command"], "sketch", job["path"], *rest)


def main() -> None:
    job = json.loads(sys.argv[1])
    run = {OUR_PASS: our_pass, NUMPY_PASS: numpy_pass} | dict.fromkeys(PEERS, peer)
    try:
        print(json.dumps(run.get(job["method"], ours)(job)))
    except MemoryError:
        print(json.dumps({"status": "MemoryError"}))


if __name__ == "__main__":
    main()
