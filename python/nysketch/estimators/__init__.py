"""Estimators in the style of scikit-learn that learn from a sketch of X.

``fit`` makes a plan from X, sketches X, and learns from the sketch. ``partial_fit`` adds rows to
the sketch, and the model is learned again when it is next used. In addition to the types that
scikit-learn supports, X may be any object with the Arrow stream interface, which is read batch by
batch.
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
