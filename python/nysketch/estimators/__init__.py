"""Estimators of scikit-learn's kind that learn from a sketch of X.

``fit`` makes a plan from X, sketches X, and learns from the sketch; ``partial_fit`` adds rows to
the sketch, and the model is learned anew when it is next asked for. Beside what scikit-learn takes,
X may be anything with the Arrow stream interface, which is read batch by batch.
"""

from nysketch.estimators._centres import CompressiveKMeans, CompressiveKMedians
from nysketch.estimators._mixture import CompressiveGaussianMixture
from nysketch.estimators._sketcher import NystromSketcher

__all__ = [
    "CompressiveGaussianMixture",
    "CompressiveKMeans",
    "CompressiveKMedians",
    "NystromSketcher",
]
