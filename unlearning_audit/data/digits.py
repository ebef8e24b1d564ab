"""Digits: 1,797 handwritten digits of 8 × 8 pixels that ship with scikit-learn (Alpaydin and Kaynak 1998).

No download; no test part either: give ``test_size`` to split one off.
"""

from importlib.metadata import distribution
from pathlib import Path

import numpy as np

from unlearning_audit.data import Settings, Source

#: The source needs no download.
AT_HAND = True


class Options(Settings):
    """``images``: float32 [n, 1, 8, 8] for a convolutional network, else a table float32 [n, 64]."""

    images: bool = False


def load(options: Options, root: Path) -> Source:
    """Read the images, float32 [1797, 64] or, with ``images``, [1797, 1, 8, 8], and the digits as labels. The 17 grey
    levels 0 … 16 are divided by 16, which is exact in float32. ``root`` is not used."""
    # scikit-learn's own reader is not used, because importing it takes longer than most jobs.
    file = str(distribution("scikit-learn").locate_file("sklearn/datasets/data/digits.csv.gz"))
    table = np.loadtxt(file, delimiter=",")
    x, y = (table[:, :-1] / 16).astype(np.float32), table[:, -1]
    if options.images:
        x = x.reshape(-1, 1, 8, 8)
    return Source(x, y.astype(np.int64), np.zeros(len(y), dtype=np.uint8), classes=10)
