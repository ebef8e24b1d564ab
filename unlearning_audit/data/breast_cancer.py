"""Breast cancer: 569 biopsies, 30 measurements of cell nuclei each; ships with scikit-learn (Street et al. 1993).

No download; no test part either: give ``test_size`` to split one off.
"""

from importlib.metadata import distribution
from pathlib import Path

import numpy as np

from unlearning_audit.data import Settings, Source

#: The source needs no download.
AT_HAND = True


class Options(Settings):
    """The source has no options."""


def load(options: Options, root: Path) -> Source:
    """Read ``x`` float32 [569, 30], each measurement standardised over all samples, and ``y``: 0 malignant, 1 benign.
    ``root`` is not used."""
    # scikit-learn's own reader is not used, because importing it takes longer than most jobs.
    file = str(distribution("scikit-learn").locate_file("sklearn/datasets/data/breast_cancer.csv"))
    table = np.loadtxt(file, delimiter=",", skiprows=1)
    values, y = table[:, :-1], table[:, -1].astype(np.int64)
    x = ((values - values.mean(0)) / values.std(0)).astype(np.float32)
    return Source(x, y, np.zeros(len(y), dtype=np.uint8), classes=2)
