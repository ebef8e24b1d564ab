"""The samples of a study, written atomically and checked when read."""

from dataclasses import dataclass
from typing import Annotated

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

    x: Annotated[np.ndarray, "uif samples ..."]
    y: Annotated[np.ndarray, "iu samples"]
    part: Annotated[np.ndarray, "iu samples"]
    y_clean: Annotated[np.ndarray, "iu samples"]
    index: Annotated[np.ndarray, "iu samples"]
    classes: Annotated[int, "iu"]
    public: Annotated[np.ndarray | None, "iu public length"] = None
    compressed: Annotated[np.ndarray | None, "iu samples"] = None
    tokenizer: Annotated[np.ndarray | None, "iu bytes"] = None
    parent: Annotated[np.ndarray | None, "iu samples"] = None
    view: Annotated[np.ndarray | None, "iu samples"] = None
    group: Annotated[np.ndarray | None, "iu samples"] = None
    subject: Annotated[np.ndarray | None, "iu samples"] = None

    def views(self, kind: str) -> np.ndarray:
        """Return the rows that are views of one kind of each sample, int64 [samples, most views of any sample], filled
        with −1."""
        return views.rows_of(kind, self.parent, self.view, len(self.y))
