"""The samples of a study, written atomically and checked when read."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unlearning_audit.evaluation import views
from unlearning_audit.store.files import Arrays, Check, read_arrays


@dataclass(frozen=True)
class Data(Arrays):
    """``data.npz``: samples in canonical order.

    ``x`` uint8 or float32 [samples, …] (tokens: int32), ``y`` int64 [samples] observed labels, ``part`` uint8 [samples]
    (0 train, 1 test, 2 view), ``y_clean`` int64 [samples] labels before label noise, ``index`` int64 [samples] row in
    the source, ``classes`` the number of classes. A user's file needs only x, y and part. Text may have ``public``
    int32 [rows, length], ``compressed`` int64 [samples] and ``tokenizer`` uint8 [bytes]; views, rows of part 2, have
    ``parent`` int64 and ``view`` uint8 [samples]; several sets in the test part have ``group`` uint8 [samples] (see
    `unlearning_audit.data.Source`). ``subject`` int64 [samples]: the person to whom each sample belongs.
    """

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
        return views.of(kind, self.parent, self.view, len(self.y))

    @classmethod
    def read(cls, path: str | Path) -> "Data":
        """Read and check a file. Raises ArtifactError that names the file and the field."""
        check = Check(path, read_arrays(path))
        x = check.field("x", "uif")
        if x.ndim < 2 or not len(x):
            check.fail("x", f"has shape {x.shape} but must hold one row for each sample")
        n = len(x)
        y, part = check.field("y", "iu", (n,)), check.field("part", "iub", (n,))
        y_clean = check.field("y_clean", "iu", (n,)) if "y_clean" in check.arrays else y
        index = check.field("index", "iu", (n,)) if "index" in check.arrays else np.arange(n)
        classes = int(check.field("classes", "iu", ())) if "classes" in check.arrays else int(y.max()) + 1
        for name, labels in (("y", y), ("y_clean", y_clean)):
            if labels.min() < 0 or labels.max() >= classes:
                check.fail(name, f"has labels outside 0 … {classes - 1}")
        if not np.isin(part, (0, 1, 2) if "parent" in check.arrays else (0, 1)).all():
            check.fail("part", "has values other than 0 (train) and 1 (test)")
        if len(np.unique(index)) != n:
            check.fail("index", "names some rows of the source twice")
        y, y_clean, index = (values.astype(np.int64) for values in (y, y_clean, index))
        shapes = {"public": (None, *x.shape[1:]), "compressed": (n,), "tokenizer": (None,)}
        shapes |= {"parent": (n,), "view": (n,), "group": (n,), "subject": (n,)}
        text = {name: check.field(name, "iu", shape) for name, shape in shapes.items() if name in check.arrays}
        if problem := views.wrong(part, text.get("parent"), text.get("view")):
            check.fail("parent", problem)
        return cls(x, y, part.astype(np.uint8), y_clean, index, classes, **text)
