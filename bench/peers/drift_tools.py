"""One tool of bench/peers/drift.py, run in the environment of the tool.

A tool reads the files of two samples and returns scores: p-values, or equivalent numbers. It calls
the samples different if a score is at most 0.05. The argument is a job in JSON, and the output is
JSON.
"""

import json
import os
import resource
import subprocess
import sys
from functools import partial
from math import ceil
from pathlib import Path

DRAWS = 199  # Permutations of our own test.
THEIRS = 100  # Permutations of the peers: the default of alibi-detect.
SAMPLE = 1_000  # Rows for the median of the distances.
BLOCK = 1_000
FAST = 10  # CPU seconds; longer computations are measured once.


class Nysketch:
    """The command, as whole processes; the sketch of the reference also contains its plan."""

    def __init__(self, job: dict, *options: object):
        self.command, self.options = job["command"], options

    def run(self, *line: object) -> str:
        line = [self.command, *map(str, line), "--threads", "1", "-q"]
        done = subprocess.run(line, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(line)}\n{done.stderr}")
        return done.stdout

    def reference(self, a: Path, seed: int) -> None:
        plan, self.a, self.seed = a.with_suffix(".plan"), a.with_suffix(".nys"), seed
        self.run("plan", a, "-o", plan, "--force", "--seed", seed, *self.options)
        self.run("sketch", a, "--plan", plan, "-o", self.a, "--force")

    def compare(self, b: Path) -> list[float]:
        sketch = b.with_suffix(".nys")
        self.run("sketch", b, "--plan", self.a, "-o", sketch, "--force")
        found = json.loads(self.run("diff", self.a, sketch, "--json", "--seed", self.seed))
        # Without a test there is no p-value.
        return [1.0 if found["p_value"] is None else found["p_value"]]

    def kept(self) -> int:
        return self.a.stat().st_size


class Rows:
    """A tool that stores the rows of the reference."""

    def reference(self, a: Path, seed: int) -> None:
        import numpy as np

        self.A, self.seed = np.load(a), seed

    def compare(self, b: Path) -> list[float]:
        import numpy as np

        return self.scores(np.load(b))

    def kept(self) -> int:
        return self.A.nbytes


def median_distance(X, rng) -> float:
    """Returns the median of the squared distances between some of the rows."""
    import numpy as np
    from scipy.spatial.distance import pdist

    return float(np.median(pdist(X[rng.permutation(len(X))[:SAMPLE]], "sqeuclidean")))


class Permutations(Rows):
    """Permutation test of the maximum mean discrepancy, Gaussian kernel, median heuristic."""

    def __init__(self, job: dict):
        import scipy.spatial.distance  # noqa: F401

    def scores(self, B) -> list[float]:
        import numpy as np

        rng = np.random.default_rng(self.seed)
        X = np.concatenate([self.A, B])
        X = ((X - X.mean(axis=0)) / np.sqrt(median_distance(X, rng))).astype(np.float32)
        side = np.repeat([1 / len(self.A), -1 / len(B)], [len(self.A), len(B)])
        draws = (rng.permutation(side) for _ in range(DRAWS))
        sides = np.column_stack([side, *draws]).astype(np.float32)
        squares, total = (X**2).sum(axis=1), np.zeros(DRAWS + 1)
        for i in range(0, len(X), BLOCK):
            for j in range(i, len(X), BLOCK):
                these, those = slice(i, i + BLOCK), slice(j, j + BLOCK)
                K = 2 * X[these] @ X[those].T
                K -= squares[these, None]
                K -= squares[those]
                np.exp(K, out=K)
                part = ((K @ sides[those]) * sides[these]).sum(axis=0, dtype=np.float64)
                total += part if i == j else 2 * part
        # Rounding must not make a permutation that swaps nothing smaller than the original.
        above = total[1:] >= total[0] * (1 - 1e-6)
        return [(1 + int(above.sum())) / (DRAWS + 1)]


class KolmogorovSmirnov(Rows):
    """The smallest p-value of all columns, by Bonferroni and by Benjamini and Hochberg."""

    def __init__(self, job: dict):
        import scipy.stats  # noqa: F401

    def scores(self, B) -> list[float]:
        from scipy.stats import false_discovery_control, ks_2samp

        p = ks_2samp(self.A, B).pvalue
        return [min(1.0, len(p) * float(p.min())), float(false_discovery_control(p).min())]


class AlibiDetect(Rows):
    """MMDDrift with its defaults, in float32."""

    def __init__(self, job: dict):
        import torch
        from alibi_detect.cd import MMDDrift

        torch.set_num_threads(1)
        self.seeded = torch.manual_seed
        self.detector = partial(MMDDrift, backend="pytorch", device="cpu", n_permutations=THEIRS)

    def reference(self, a: Path, seed: int) -> None:
        super().reference(a, seed)
        self.fitted = self.detector(self.A.astype("float32"))

    def scores(self, B) -> list[float]:
        self.seeded(self.seed)
        return [self.fitted.predict(B.astype("float32"))["data"]["p_val"]]


class Frouros(Rows):
    """MMD with its permutation test and the median heuristic (its own bandwidth is 1)."""

    def __init__(self, job: dict):
        import frouros.callbacks
        import frouros.detectors.data_drift
        import frouros.utils.kernels  # noqa: F401

    def reference(self, a: Path, seed: int) -> None:
        import numpy as np
        from frouros.callbacks import PermutationTestDistanceBased
        from frouros.detectors.data_drift import MMD
        from frouros.utils.kernels import rbf_kernel

        super().reference(a, seed)
        sigma = (median_distance(self.A, np.random.default_rng(seed)) / 2) ** 0.5
        options = {"method": "conservative", "num_jobs": 1, "random_state": seed, "name": "test"}
        test = PermutationTestDistanceBased(THEIRS, **options)
        self.fitted = MMD(kernel=partial(rbf_kernel, sigma=sigma), callbacks=[test])
        self.fitted.fit(X=self.A)

    def scores(self, B) -> list[float]:
        return [float(self.fitted.compare(X=B)[1]["test"]["p_value"])]


class Evidently(Rows):
    """The tests that evidently chooses for the columns: any column, and half of them (its default).

    Distances, which it uses above 1,000 rows, are mapped to a score of 0.05 at its threshold of
    0.1. Its report is timed; the scores of many pairs come from the tests alone, with equal results.
    """

    def __init__(self, job: dict):
        os.environ["DO_NOT_TRACK"] = "1"
        import evidently
        import evidently.presets

        self.report = evidently.Report([evidently.presets.DataDriftPreset()])
        self.whole = job["cost"]

    def scores(self, B) -> list[float]:
        import pandas as pd

        names = [f"c{j}" for j in range(B.shape[1])]
        a, b = pd.DataFrame(self.A, columns=names), pd.DataFrame(B, columns=names)
        if self.whole or self.seed == 0:
            found = self.reported(a, b)
        if not self.whole:
            alone = self.tested(a, b)
            if self.seed == 0 and alone != found:
                sys.exit(f"the report of evidently and its tests differ: {found}, {alone}")
            found = alone
        found.sort()
        return [found[0], found[ceil(len(found) / 2) - 1]]

    def reported(self, a, b) -> list[float]:
        metrics = self.report.run(b, a).dict()["metrics"]
        found = [m for m in metrics if m["metric_name"].startswith("ValueDrift")]
        return [score(m["config"]["method"], float(m["value"])) for m in found]

    def tested(self, a, b) -> list[float]:
        from evidently.legacy.calculations.stattests import get_stattest

        found = []
        for name in a:
            test = get_stattest(a[name], b[name], "num", None)
            drift = test(a[name], b[name], "num", None).drift_score
            found.append(score(test.display_name, float(drift)))
        return found


def score(method: str, value: float) -> float:
    if value != value:
        return 1.0
    if "p_value" in method:
        return value
    if "distance" in method:
        return min(1.0, 0.05 * 0.1 / max(value, 1e-12))
    sys.exit(f"neither a p-value nor a distance: {method}")


TOOLS = {
    "nysketch": Nysketch,
    "nysketch-40": lambda job: Nysketch(job, "--landmarks", 40),
    "rows": Permutations,
    "scipy": KolmogorovSmirnov,
    "alibi-detect": AlibiDetect,
    "frouros": Frouros,
    "evidently": Evidently,
}


def cpu() -> float:
    """Returns the CPU seconds of this process and its children."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def memory() -> int:
    """Returns the peak memory of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    sys.exit("no VmHWM in /proc/self/status")


def pairs(folder: str, count: int):
    """Yields the files of the samples, and the seed."""
    for trial in range(count):
        yield Path(folder) / f"a{trial}.npy", Path(folder) / f"b{trial}.npy", trial


def scores(tool, folders: list) -> list:
    """Returns the scores of all pairs in each folder."""

    def of(a: Path, b: Path, seed: int) -> list[float]:
        tool.reference(a, seed)
        return tool.compare(b)

    return [[of(*each) for each in pairs(*folder)] for folder in folders]


def cost(tool, folders: list) -> dict:
    """Returns the minimum CPU seconds of the reference and of a comparison, and peak memory."""
    packages, once, each = memory(), [], []
    for a, b, seed in pairs(*folders[0]):
        start = cpu()
        tool.reference(a, seed)
        middle = cpu()
        tool.compare(b)
        once.append(middle - start)
        each.append(cpu() - middle)
        if cpu() - start > FAST:
            break
    found = {"once": min(once), "each": min(each), "kept": tool.kept()}
    if isinstance(tool, Nysketch):
        # At least that of plain Python, which starts the command.
        peak = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        return found | {"peak": peak, "packages": 0}
    return found | {"peak": memory(), "packages": packages}


def main() -> None:
    job = json.loads(sys.argv[1])
    tool = TOOLS[job["tool"]](job)
    print(json.dumps((cost if job["cost"] else scores)(tool, job["folders"])))


if __name__ == "__main__":
    main()
