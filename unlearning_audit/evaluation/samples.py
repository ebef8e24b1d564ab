"""The samples of a study, written atomically and checked when read."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unlearning_audit.evaluation import views
from unlearning_audit.evaluation.stored import Stored


@dataclass(frozen=True)
class Data(Stored):
    """``data.npz``: samples in canonical order.

    Parameters
    ----------
    x
        uint8 or float32 [samples, …], tokens int32: the inputs of the models.
    y
        int64 [samples]: the observed labels.
    part
        uint8 [samples]: 0 train, 1 test, 2 view.
    y_clean
        int64 [samples]: the labels before label noise.
    index
        int64 [samples]: the row in the source.
    classes
        The number of classes.
    public
        int32 [rows, length]: passages of text that a base model learns and that are never forgotten.
    compressed
        int64 [samples]: bytes of each sample's text after zlib.
    tokenizer
        uint8 [bytes]: the content of ``tokenizer.json``.
    parent
        int64 [samples]: the sample of which a view (part 2) is a variant, −1 for others.
    view
        uint8 [samples]: the kind of a view, one of `evaluation.views.VIEWS`, 0 for others.
    group
        uint8 [samples]: the set from which a sample of the test part comes, if there are several, 0 for others.
    subject
        int64 [samples]: the person to whom each sample belongs.
    """

    FIELDS: ClassVar = {
        "x": ("uif", "samples ..."), **dict.fromkeys(("y", "y_clean", "index"), ("iu", "samples")),
        "part": ("iu", "samples"), "classes": ("iu", ""), "public": ("iu", "public length"),
        "tokenizer": ("iu", "bytes"),
        **dict.fromkeys(("compressed", "parent", "view", "group", "subject"), ("iu", "samples")),
    }  # fmt: skip

    x: np.ndarray
    y: np.ndarray
    part: np.ndarray
    y_clean: np.ndarray
    index: np.ndarray
    classes: int
    public: np.ndarray | None = None
    compressed: np.ndarray | None = None
    tokenizer: np.ndarray | None = None
    parent: np.ndarray | None = None
    view: np.ndarray | None = None
    group: np.ndarray | None = None
    subject: np.ndarray | None = None

    def views(self, kind: str) -> np.ndarray:
        """Return the rows that are views of one kind of each sample, int64 [samples, most views of any sample], filled
        with −1."""
        return views.rows_of(kind, self.parent, self.view, len(self.y))
