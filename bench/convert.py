"""Parquet tables as NumPy files, for `quality --real`: python bench/convert.py FROM TO

Numeric columns except `label`, without rows that have missing values; `.npy` files are copied.
Requires numpy and pyarrow.
"""

import pathlib
import shutil
import sys

import numpy as np
import pyarrow.parquet as pq

source, target = map(pathlib.Path, sys.argv[1:3])
target.mkdir(parents=True, exist_ok=True)
for path in sorted(source.iterdir()):
    if path.suffix == ".npy" and "labels" not in path.name:
        shutil.copy(path, target)
    elif path.suffix == ".parquet":
        table = pq.read_table(path)
        columns = [table[name].to_numpy().astype(np.float64) for name in table.column_names if name != "label"]
        values = np.stack(columns, 1)
        np.save(target / f"{path.stem}.npy", values[np.isfinite(values).all(1)])
