"""Clusters of mixed tables compared with k-prototypes and one-hot k-means.

    python3 bench/peers/mixed.py [--command target/release/nysketch] [--jobs N]

The tables are mixtures whose components have a Gaussian for the numbers and a multinomial for each
category. The reported value is the adjusted Rand index of clusters and components, the median over
tables. k-means has ten starts; k-prototypes has one, which takes 16 s for 20,000 rows (a complete run
takes about two hours on one core). Has the requirements of bench/peers, and uses its environment.
Prints a Markdown table, and fails if the sketch is worse than the best of the others over all tables.
"""

import argparse
import sys
import tempfile
from multiprocessing import Pool
from pathlib import Path
from statistics import median

from command import kmeans, labels, run
from environment import FOLDER, ROOT, enter

SEEDS = 10
STARTS = 10
FIRST = 5_000  # Tables of lower seeds were used to choose the weight of a category.
# Rows, components, numbers, levels of each category.
SHAPES = (
    (5_000, 5, 4, (3, 8, 20)),
    (20_000, 10, 8, (3, 5, 10, 10, 20)),
    (10_000, 5, 8, (3, 3, 4)),
    (20_000, 10, 4, (5, 10, 20, 20, 20)),
)
# Deviation of the means divided by that of the rows around them; similarity of level shares, as the
# concentration of a Dirichlet distribution, infinite if all components have equal shares.
CASES = {
    "both, easy": (1.5, 0.3),
    "both, medium": (1.0, 0.5),
    "both, hard": (0.7, 1.0),
    "numbers only": (1.5, float("inf")),
    "mostly categories": (0.5, 0.2),
    "categories only": (0.0, 0.2),
}
SKETCH, MIXTURE = "nysketch kmeans", "nysketch gmm"


def draw(shape, case, seed: int):
    """Returns numbers in different units, codes of levels, and the component of each row."""
    import numpy as np

    (n, k, d, levels), (separation, concentration) = shape, case
    rng = np.random.default_rng(seed)
    component = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
    means, deviations = separation * rng.normal(size=(k, d)), rng.uniform(0.7, 1.3, (k, d))
    numbers = means[component] + deviations[component] * rng.normal(size=(n, d))
    numbers = numbers * np.exp(rng.normal(size=d)) + 10 * rng.normal(size=d)
    codes = np.empty((n, len(levels)), int)
    for j, count in enumerate(levels):
        base = rng.dirichlet(np.ones(count))
        shares = np.tile(base, (k, 1))
        if concentration < np.inf:
            # No level is so rare overall that the share in a component underflows to 0.
            shares = rng.dirichlet(concentration * (0.7 * base * count + 0.3), k)
        codes[:, j] = (rng.random(n)[:, None] > shares.cumsum(axis=1)[component]).sum(axis=1)
        codes[:, j] = np.minimum(codes[:, j], count - 1)
    return numbers, codes, component


def by_sketch(numbers, codes, k: int, seed: int, command: Path, folder: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {f"x{j}": numbers[:, j] for j in range(numbers.shape[1])}
    for j in range(codes.shape[1]):
        columns[f"c{j}"] = [f"level {code}" for code in codes[:, j]]
    table = folder / "rows.parquet"
    pq.write_table(pa.table(columns), table)
    centres = labels(command, kmeans(command, table, k, seed), table)
    sketch, model = table.with_suffix(".nys"), table.with_suffix(".json")
    run(command, "fit", "gmm", sketch, "-k", k, "--seed", seed, "-o", model, "--force")
    return centres, labels(command, model, table)


def one_hot(numbers, codes, factor: float, k: int, seed: int):
    import numpy as np
    from sklearn.cluster import KMeans

    parts = [factor * np.eye(each.max() + 1)[each] for each in codes.T]
    return KMeans(k, n_init=STARTS, random_state=seed).fit_predict(np.hstack([numbers, *parts]))


def prototypes(numbers, codes, gamma, k: int, seed: int):
    import numpy as np
    from kmodes.kprototypes import KPrototypes

    rows = np.hstack([numbers, codes]).astype(object)
    which = list(range(numbers.shape[1], rows.shape[1]))
    model = KPrototypes(k, init="Cao", n_init=1, gamma=gamma, random_state=seed)
    return model.fit_predict(rows, categorical=which)


def methods(numbers, codes, k: int, seed: int, command: Path, folder: Path) -> dict:
    """Returns the cluster of each row, by each method."""
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler().fit_transform(numbers)
    centres, components = by_sketch(numbers, codes, k, seed, command, folder)
    return {
        SKETCH: centres,
        MIXTURE: components,
        "one-hot k-means": one_hot(scaled, codes, 1, k, seed),
        "one-hot/√2 k-means": one_hot(scaled, codes, 0.5**0.5, k, seed),
        "k-prototypes": prototypes(numbers, codes, None, k, seed),
        "k-prototypes, standardised, γ = 0.5": prototypes(scaled, codes, 0.5, k, seed),
    }


def agreement(job) -> dict:
    """Returns the agreement of each method with the components of one table."""
    from sklearn.metrics import adjusted_rand_score

    name, shape, seed, command = job
    numbers, codes, component = draw(shape, CASES[name], seed)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        each = methods(numbers, codes, shape[1], seed, command, Path(folder))
    return {method: adjusted_rand_score(component, cluster) for method, cluster in each.items()}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default=ROOT / "target" / "release" / "nysketch")
    parser.add_argument("--jobs", type=int, default=1, help="tables at the same time")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="tables of each kind")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    enter(Path(__file__))
    FOLDER.mkdir(parents=True, exist_ok=True)
    seeds = range(FIRST, FIRST + args.seeds)
    jobs = [(c, s, seed, args.command) for c in CASES for s in SHAPES for seed in seeds]
    with Pool(args.jobs) as pool:
        results = iter(pool.map(agreement, jobs, chunksize=1))
    every = {}
    for name in CASES:
        found = {}
        for _ in range(len(SHAPES) * args.seeds):
            for method, value in next(results).items():
                found.setdefault(method, []).append(value)
        if not every:
            print(f"| informative | {' | '.join(found)} |")
            print("|---" * (len(found) + 1) + "|")
        print(f"| {name} | {' | '.join(f'{median(x):.3f}' for x in found.values())} |", flush=True)
        for method, values in found.items():
            every.setdefault(method, []).extend(values)
    overall = {method: median(values) for method, values in every.items()}
    print(f"| all | {' | '.join(f'{x:.3f}' for x in overall.values())} |")
    best = max(overall, key=overall.get)
    if best not in (SKETCH, MIXTURE):
        sys.exit(f"{best} is better in the median")


if __name__ == "__main__":
    main()
