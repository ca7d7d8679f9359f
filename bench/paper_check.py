"""The paper's formulas, computed independently with NumPy and compared with the command's output.

    python3 bench/paper_check.py target/debug/nysketch

Makes a table, runs the command to plan, sketch, learn and compare, reads its files with the
safetensors package, and computes the following in double precision, without using nysketch:

    kernel means        eq. (3) over the rows, and their Fourier counterpart (5)
    the map             eq. (8), K_m^(-1/2) k(x): lemma 3.1 on the landmarks
    embeddings          eq. (30) of a mixture, through its distance (6) to the sketch
    MMD                 the distance of two sketches in the metric of (8)
    greedy landmarks    section 3.2, in their order
    leverage scores     the effective dimension that BLESS estimates, and the rows that it draws
    N, N_inf, Sigma     the effective dimensions of section 4, at the landmarks
    (20), (21)          the sizes of theorem 4.1

Tolerances follow from the rounding: the pass stores kernel values in units of 2^-23, computed in
single precision (errors up to 3e-7), and K_m^(-1/2) with eigenvalues down to 1e-9 of the largest
amplifies these errors.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from safetensors import safe_open

SIGMA2 = 3.0
UNIT = 2.0**-23
# Cut-offs of the eigenvalues of K_m, as shares of the largest: when decoding, and otherwise.
DECODING, ROUNDING = 1e-9, 1e-12
COMPARED = []


def compare(what, got, want, relative=0.0, absolute=0.0):
    """Prints the difference of two results, and stops if it is too large."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    off = np.abs(got - want).max()
    allowed = absolute + relative * np.abs(want).max()
    COMPARED.append(what)
    print(f"{what:44} off by {off:.1e}, {allowed:.1e} allowed")
    assert got.shape == want.shape and off <= allowed, f"{what}: {got} is not {want}"


def rows(seed, shift=0.0):
    """Returns 2,000 rows of four clusters in three columns, in single precision, as in the pass."""
    draw = np.random.default_rng(seed)
    centres = 3.0 * np.random.default_rng(7).standard_normal((4, 3))
    labels = draw.integers(4, size=2000)
    return (centres[labels] + draw.standard_normal((2000, 3)) + shift).astype(np.float32)


def read(path):
    with safe_open(path, "np") as f:
        return json.loads(f.metadata()["nysketch"]), {k: f.get_tensor(k) for k in f.keys()}


def integers(tensor):
    """Converts 128-bit sums to doubles."""
    return tensor[..., 1].astype(np.int64).astype(float) * 2.0**64 + tensor[..., 0].astype(float)


def kernel(x, y):
    """Returns the Gaussian kernel of section 5."""
    squares = (x**2).sum(1)[:, None] + (y**2).sum(1)[None, :] - 2.0 * x @ y.T
    return np.exp(-np.maximum(squares, 0.0) / (2.0 * SIGMA2))


def whitening(gram, cutoff):
    """Returns K_m^(-1/2) of (8), without eigenvalues below a share of the largest, and its rank."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > cutoff * values[-1]
    return (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T, int(kept.sum())


class Work:
    """A folder with tables and the files that the command makes from them."""

    def __init__(self, command, folder):
        self.command, self.folder = command, folder
        self.x, self.y = rows(1), rows(2, shift=0.3)
        np.save(folder / "x.npy", self.x)
        np.save(folder / "y.npy", self.y)

    def run(self, line):
        """Returns the output of the command."""
        done = subprocess.run(
            [self.command, *line.split(), "--json", "--quiet"], cwd=self.folder, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"
        return json.loads(done.stdout)

    def sketch(self, name, options):
        """Makes a plan and the sketches of both tables; returns the report on the plan, and the plan."""
        said = self.run(f"plan x.npy -o {name}.plan.nys --scale none --bandwidth {SIGMA2} --sample-rows all {options}")
        for table in "xy":
            self.run(f"sketch {table}.npy --plan {name}.plan.nys -o {name}-{table}.nys")
        return said, read(self.folder / f"{name}.plan.nys")[1]

    def means(self, name, table):
        _, sketch = read(self.folder / f"{name}-{table}.nys")
        return integers(sketch["features"])[0] * UNIT / integers(sketch["rows"])[0]

    def place(self, plan, table):
        """Returns the rows of a table in the plan's coordinates."""
        values = (self.x if table == "x" else self.y).astype(float)
        return (values - plan["centre"]) / plan["scale"]


def mixture(work, path, plan):
    """Returns the weights, means and variances of a model in the plan's coordinates."""
    model = json.loads((work.folder / path).read_text())
    means = (np.array(model["means"]) - plan["centre"]) / plan["scale"]
    return np.array(model["weights"]), means, np.array(model["variances"]) / plan["scale"] ** 2


def nystrom(work):
    _, plan = work.sketch("greedy", "--landmarks 60 --sampling greedy --witnesses 0")
    landmarks = plan["landmarks"].astype(float)
    x, y = work.place(plan, "x"), work.place(plan, "y")
    gram = kernel(landmarks, landmarks)

    # Rounding of rows to f32 changes kernel values by about 1e-7, in addition to the pass.
    mean_x, mean_y = work.means("greedy", "x"), work.means("greedy", "y")
    compare("kernel means (3), (8)", mean_x, kernel(x, landmarks).mean(0), absolute=4e-7)
    compare("kernel means of other rows", mean_y, kernel(y, landmarks).mean(0), absolute=4e-7)

    w, rank = whitening(gram, ROUNDING)
    phi = w @ gram
    compare("map on landmarks, lemma 3.1", phi.T @ phi, gram, absolute=1e-9)
    said = work.run("inspect greedy-x.nys")
    compare("rank of K_m", said["rank"][0], rank)

    order = greedy(x, landmarks[0])
    compare("greedy landmarks, in order", landmarks, x[order], absolute=1e-6)

    # Both sides use the same sums; rounding errors of 1e-16 are divided by a cut-off of 1e-9.
    w, rank = whitening(gram, DECODING)
    mmd = np.linalg.norm(w @ (mean_y - mean_x))
    found = work.run("diff greedy-x.nys greedy-y.nys")
    compare("MMD of two sketches", found["discrepancies"][0]["mmd"], mmd, relative=1e-6)
    direct = np.sqrt(kernel(x, x).mean() + kernel(y, y).mean() - 2.0 * kernel(x, y).mean())
    # A projection is shorter; with sixty landmarks the difference is small.
    assert mmd <= direct + 1e-6 and mmd > 0.95 * direct, (mmd, direct)

    for decoder in ("kernel", "clompr"):
        fit = work.run(f"fit gmm greedy-x.nys -k 3 -o {decoder}.json --decoder {decoder} --force")
        compare(f"rank that {decoder} decodes", fit["rank"], rank)
        weights, means, variances = mixture(work, f"{decoder}.json", plan)
        spread = variances + SIGMA2
        peak = np.prod(np.sqrt(SIGMA2 / spread), axis=1)
        near = (((landmarks[:, None] - means[None]) ** 2) / spread[None]).sum(2)
        residual = np.linalg.norm(w @ ((peak * np.exp(-0.5 * near)) @ weights - mean_x))
        got = fit["explained"]["residuals"][0]["residual"]
        compare(f"embeddings (30), distance (6), {decoder}", got, residual, relative=1e-5)
    return plan, landmarks, gram


def greedy(x, first):
    """Section 3.2: selects the row of largest Schur complement next, from the same first row."""
    chosen = [int(np.abs(x - first).sum(1).argmin())]
    residual, factor = np.ones(len(x)), np.zeros((len(x), 60))
    for t in range(60):
        p = chosen[t]
        column = kernel(x, x[p : p + 1])[:, 0] - factor[:, :t] @ factor[p, :t]
        factor[:, t] = column / np.sqrt(column[p])
        residual -= factor[:, t] ** 2
        chosen.append(int(residual.argmax()))
    return chosen[:60]


def fourier(work):
    _, plan = work.sketch("fourier", "--features fourier --frequencies 50")
    x = work.place(plan, "x")
    omega = plan["frequencies"].astype(float) / np.sqrt(SIGMA2)
    waves = np.concatenate([np.cos(x @ omega.T), np.sin(x @ omega.T)], axis=1).mean(0)
    mean = work.means("fourier", "x")
    compare("Fourier means (5)", mean, waves, absolute=1e-6)
    fit = work.run("fit gmm fourier-x.nys -k 3 -o fourier.json --decoder clompr")
    weights, means, variances = mixture(work, "fourier.json", plan)
    damp = np.exp(-0.5 * omega**2 @ variances.T)
    angle = omega @ means.T
    atoms = np.concatenate([damp * np.cos(angle), damp * np.sin(angle)])
    residual = np.linalg.norm(atoms @ weights - mean) / np.sqrt(len(omega))
    got = fit["explained"]["residuals"][0]["residual"]
    compare("Fourier embeddings, distance (6)", got, residual, relative=1e-5)
    assert len(fit["replicates"]) == 5, fit["replicates"]


def leverage(work):
    said, plan = work.sketch("bless", "--landmarks 100 --sampling leverage --witnesses 0")
    x = work.place(plan, "x")
    lam, n = said["leverage"]["lambda"], len(x)
    gram = kernel(x, x)
    scores = np.linalg.solve(gram + lam * n * np.eye(n), gram).diagonal()
    # The scores are approximate up to the reported factor; their sum over draws is more accurate.
    share = said["leverage"]["effective_dimension"] / scores.sum()
    accuracy = said["leverage"]["accuracy"]
    print(f"{'leverage scores, their sum':44} {share:.3f} times the exact one, accuracy {accuracy:.2f}")
    assert 1.0 / accuracy <= share <= accuracy
    # Rows drawn by leverage have a mean score of sum of squares divided by sum, with a deviation of
    # the same magnitude divided by the square root of their number; allow four deviations, and the
    # accuracy of the scores.
    places = [int(np.abs(x - z).sum(1).argmin()) for z in plan["landmarks"].astype(float)]
    drawn, expected = scores[places].mean(), (scores**2).sum() / scores.sum()
    spread = np.sqrt((scores**3).sum() / scores.sum() - expected**2) / np.sqrt(len(places))
    print(f"{'leverage scores, where it draws':44} mean {drawn:.2e}, expected {expected:.2e} ± {spread:.0e}")
    assert expected / accuracy - 4 * spread <= drawn <= expected * accuracy + 4 * spread
    COMPARED.extend(["leverage", "draws"])


def theory(work, plan, landmarks, gram):
    said = work.run("inspect greedy-x.nys --theory -k 3")
    found = said["theory"]
    cells = integers(read(work.folder / "greedy-x.nys")[1]["cell_rows"])
    root = np.sqrt(cells / cells.sum())
    values, vectors = np.linalg.eigh(root[:, None] * gram * root[None, :])
    # Rounding errors of eigenvalues are 1e-16; λ is at least 1e-6.
    compare("norm of Sigma", found["norm"], values[-1], relative=1e-9)
    lam, delta, n = found["lambda"], found["delta"], found["rows"]
    dimension = (values / (values + lam)).sum()
    compare("N(lambda)", found["effective_dimension"], dimension, relative=1e-6)
    seen = (vectors.T @ (root[:, None] * gram)) ** 2
    of_each = (1.0 - (seen / (values[:, None] + lam)).sum(0)) / lam
    compare("N_inf(lambda)", found["largest_leverage"], of_each.max(), relative=1e-5)
    uniform = max(67.0, 5.0 * of_each.max()) * np.log(4.0 / (lam * delta))
    compare("(20)", found["uniform"], uniform, relative=1e-5)
    by_scores = max(334.0, 78.0 * dimension) * np.log(16.0 * n / delta)
    compare("(21a)", found["leverage"], by_scores, relative=1e-6)
    compare("(21b)", found["least_rows"], 1655.0 + 233.0 * np.log(4.0 / delta), relative=1e-12)
    compare("(21c)", found["least_lambda"], 19.0 / n * np.log(4.0 * n / delta), relative=1e-12)
    assert found["basis"] == "landmarks" and found["holds"] is None, "landmarks cannot decide (19)"

    # Compares estimates from half of the rows and from all rows: N(lambda) is too small, by less
    # than a tenth at this lambda; N_inf(lambda), a maximum over other rows, is within a quarter.
    lam = 0.02
    found = work.run(f"inspect greedy-x.nys --theory -k 3 --lambda {lam} --rows x.npy")["theory"]
    x = work.place(plan, "x")
    values = np.linalg.eigvalsh(kernel(x, x) / len(x))
    dimension = (values / (values + lam)).sum()
    compare("N(lambda) of all rows", found["effective_dimension"], dimension, relative=0.1)
    assert found["half_dimension"] < found["effective_dimension"] < dimension
    scores = np.linalg.solve(kernel(x, x) + lam * len(x) * np.eye(len(x)), kernel(x, x)).diagonal()
    largest = max(found["seen_leverage"], found["largest_leverage"])
    compare("N_inf(lambda) of all rows", largest, len(x) * scores.max(), relative=0.25)
    assert found["basis"] == "rows"


def main():
    command = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = Work(command, pathlib.Path(folder))
        theory(work, *nystrom(work))
        fourier(work)
        leverage(work)
    print(f"{len(COMPARED)} results of the command are those of NumPy")


main()
