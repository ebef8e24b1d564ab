"""Digits: 1,797 handwritten digits of 8 × 8 pixels that ship with scikit-learn (Alpaydin and Kaynak 1998).

No download; no test part either: give ``test_size`` to split one off.
"""

from pathlib import Path

import numpy as np

from unlearning.data import Source
from unlearning.plugins.settings import Settings


class Options(Settings):
    """``images``: float32 [n, 1, 8, 8] for a convolutional network, else a table float32 [n, 64]."""

    images: bool = False


def load(options: Options, root: Path) -> Source:
    """The 17 grey levels 0 … 16 divided by 16, exact in float32. ``root`` is not used."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    if options.images:
        x = x.reshape(-1, 1, 8, 8)
    return Source(x, y.astype(np.int64), np.zeros(len(y), dtype=np.uint8), classes=10)
