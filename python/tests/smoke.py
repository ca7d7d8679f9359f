"""Smoke test of an installed wheel: import, fit, and merge two halves to the same bytes."""

import numpy as np

import nysketch

rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
X = centres[rng.integers(3, size=3000)] + rng.normal(size=(3000, 2))

found = nysketch.CompressiveKMeans(n_clusters=3, random_state=0).fit(X).cluster_centers_
nearest = np.linalg.norm(found[:, None] - centres, axis=2).min(axis=0)
# 1,000 rows of unit variance per cluster: the standard error of a coordinate is 0.03.
assert nearest.max() < 0.3, found

plan = nysketch.Plan.from_data(X, landmarks=50)
whole = plan.sketch(X)
assert (plan.sketch(X[:1000]) + plan.sketch(X[1000:])).to_bytes() == whole.to_bytes()
print("nysketch", nysketch.__version__, "works")
