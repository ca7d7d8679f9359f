"""The tables of the paper's experiments in research/RESULTS.md, from the output of `nysketch-research`.

    python3 bench/paper_tables.py research/figures/trials.csv.gz              prints them as Markdown
    python3 bench/paper_tables.py research/figures/trials.csv.gz --check research/RESULTS.md

With --check it fails if a line is missing from the document, and names the line.
"""

import argparse
import collections
import csv
import gzip
import pathlib
import statistics
import sys

METHODS = {"fourier": "random Fourier", "nystrom-uniform": "Nyström, uniform", "nystrom-greedy": "Nyström, greedy"}
# Variances of the kernel in figure 1: for Nyström features and for Fourier features.
VARIANCES = {
    ("synthetic", "kmeans"): (81, 81),
    ("audio", "kmeans"): (25000, 25000),
    ("fma", "kmeans"): (5000, 5000),
    ("mnist", "kmeans"): (0.3, 0.3),
    ("cifar10", "kmeans"): (450, 450),
    ("synthetic", "gmm"): (24, 24),
    ("audio", "gmm"): (25000, 25000),
    ("fma", "gmm"): (5000, 5000),
    ("mnist", "gmm"): (0.095, 0.3),
    ("cifar10", "gmm"): (300, 10000),
}
# Sketch sizes of the sweeps over variances in figure 4.
SWEEPS = {"synthetic": 400, "synthetic-d5": 200, "audio": 400, "mnist": 400, "cifar10": 1000}
TITLES = {
    "synthetic": "Synthetic",
    "synthetic-d5": "Synthetic, d = 5",
    "audio": "Audio, ESC-50",
    "fma": "Audio, FMA",
    "mnist": "MNIST",
    "cifar10": "CIFAR10",
}

# Loss compared with all rows, by the best pursuit and by one, and whether the search was cut off.
Fit = collections.namedtuple("Fit", "loss single at_limit")


def read(path):
    """Returns fits by set, task, method, size and variance, relative to the fit on all rows."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        lines = [line for line in csv.DictReader(file) if not line["error"]]
    everything = {(x["set"], x["task"], x["trial"]): float(x["risk"]) for x in lines if x["method"] == "all-rows"}
    fits, parameters = collections.defaultdict(list), {}
    for x in lines:
        # Files have the same rows in every trial, so the fit on all rows is from the first.
        at = (x["set"], x["task"])
        all_rows = everything.get((*at, x["trial"])) or everything[(*at, "0")]
        mixture = x["task"] == "gmm"

        def loss(name):
            return float(x[name]) - all_rows if mixture else float(x[name]) / all_rows

        size = int(x["size"]) if x["size"] else None
        variance = float(x["sigma2"]) if x["sigma2"] else None
        single = loss("single_risk") if x["single_risk"] else None
        fit = Fit(loss("risk"), single, x["status"] == "EvaluationLimit")
        fits[x["set"], x["task"], x["method"], size, variance].append(fit)
        parameters[x["set"], x["task"]] = int(x["k"]) * int(x["dims"]) * (2 if mixture else 1)
    return fits, parameters


def number(x, mixture):
    if not mixture:
        return f"{x:.2f}"
    digits = 4 if abs(x) < 0.1 else 2 if abs(x) < 1 else 1 if abs(x) < 1000 else 0
    return f"{x:,.{digits}f}"


def cell(fits, mixture, single=True):
    """Formats the median of the best of five pursuits ± deviation, and the median of one pursuit."""
    losses = [fit.loss for fit in fits]
    spread = statistics.stdev(losses) if len(losses) > 1 else 0.0
    text = f"{number(statistics.median(losses), mixture)} ± {number(spread, mixture)}"
    if single:
        text += f" ({number(statistics.median(fit.single for fit in fits), mixture)})"
    return text


def table(head, lines):
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head)] + [f"| {' | '.join(line)} |" for line in lines]


def figure_1(fits, parameters, dataset, task):
    mixture, p = task == "gmm", parameters[dataset, task]
    nystrom, fourier = VARIANCES[dataset, task]
    variances = {"fourier": fourier, "nystrom-uniform": nystrom, "nystrom-greedy": nystrom}
    sizes = sorted({key[3] for key in fits if key[:3] == (dataset, task, "fourier") and key[4] == fourier})
    some = {m: [fits[dataset, task, method, m, variances[method]] for method in METHODS] for m in sizes}
    most = max(len(column) for columns in some.values() for column in columns)
    lines = []
    for m, columns in some.items():
        trials = min(len(column) for column in columns)
        at_limit = sum(fit.at_limit for column in columns for fit in column)
        lines.append(
            [f"{m:,}" + (f" ({trials} trials)" if trials < most else ""), f"{m / p:g}"]
            + [cell(column, mixture) for column in columns]
            + [f"{at_limit} of {sum(map(len, columns))}"]
        )
    return [f"**{TITLES[dataset]}**, p = {p:,}", "", *table(["m", "m/p", *METHODS.values(), "at limit"], lines), ""]


def figure_2(fits, parameters):
    dataset, task = "synthetic-k20-d30", "gmm"
    p = parameters[dataset, task]
    keys = [key for key in fits if key[:2] == (dataset, task) and key[3]]
    variances = sorted({key[4] for key in keys})
    lines = [
        [METHODS[method], f"{m:,}", f"{m / p:g}"]
        + [number(statistics.median(fit.loss for fit in fits[dataset, task, method, m, s]), True) for s in variances]
        for method in ("nystrom-uniform", "fourier")
        for m in sorted({key[3] for key in keys if key[2] == method})
    ]
    return [*table(["features", "m", "m/p", *[f"σ² = {s:g}" for s in variances]], lines), ""]


def figure_4(fits, dataset):
    size, task = SWEEPS[dataset], "gmm"
    variances = sorted({key[4] for key in fits if key[:4] == (dataset, task, "nystrom-uniform", size)})
    columns = {s: [fits[dataset, task, method, size, s] for method in METHODS] for s in variances}
    # Figure 1 has more trials at its own variance; use the same number for all lines.
    most = min(len(column) for line in columns.values() for column in line)
    lines = [[f"{s:.6g}", *[cell(column[:most], True, single=False) for column in line]] for s, line in columns.items()]
    title = TITLES[dataset] + (", d = 10" if dataset == "synthetic" else "")
    return [f"**{title}**", "", *table(["σ²", *METHODS.values()], lines), ""]


def tables(fits, parameters):
    lines = []
    for task in ("kmeans", "gmm"):
        for dataset in ("synthetic", "audio", "fma", "mnist", "cifar10"):
            lines += figure_1(fits, parameters, dataset, task)
    lines += figure_2(fits, parameters)
    for dataset in SWEEPS:
        lines += figure_4(fits, dataset)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    lines = tables(*read(args.trials))
    if args.check is None:
        print("\n".join(lines))
        return
    there = set(args.check.read_text(encoding="utf-8").splitlines())
    missing = [line for line in lines if line not in there]
    for line in missing:
        print(f"{args.check} lacks {line}")
    if missing:
        sys.exit(1)
    print(f"{args.check} has all {sum(line.startswith('|') for line in lines)} lines of the tables")


if __name__ == "__main__":
    main()
