"""Views: variants of a sample, on which models are evaluated and never trained."""

import numpy as np

#: Kinds of views; 0 stands for the sample itself. A paraphrase has the same meaning. A perturbed view says something
#: wrong in the same form. A refusal says that the answer is not known. A neighbour has a few tokens changed. An
#: alternate is an answer that a method may teach instead.
VIEWS = {"paraphrase": 1, "perturbed": 2, "refusal": 3, "neighbour": 4, "alternate": 5}


def problem(part: np.ndarray, parent: np.ndarray | None, view: np.ndarray | None) -> str:
    """Return what is wrong with views, which are variants of samples such as paraphrases, in a sentence; "" if nothing
    is.

    Parameters
    ----------
    part
        [rows]: 2 for a view.
    parent
        [rows]: for a view the row of its sample, else −1; None without views.
    view
        [rows]: for a view its kind, a number of `VIEWS`, else 0; None without views.
    """
    if (parent is None) != (view is None):
        return "parent and view belong together; give both or neither"
    if parent is None or view is None:
        return ""
    if parent.shape != part.shape or view.shape != part.shape or parent.dtype.kind != "i":
        return f"parent and view must hold one whole number for each of {len(part)} rows"
    is_view = part == 2
    if ((parent >= 0) != is_view).any() or ((view > 0) != is_view).any():
        return "parent is not −1, and view not 0, exactly where part is 2"
    if (parent >= len(part)).any() or (part[parent[is_view]] == 2).any():
        return "parent must name rows that are no views themselves"
    if (view > max(VIEWS.values())).any():
        return f"view has values above {max(VIEWS.values())}"
    return ""


def rows_of(kind: str, parent: np.ndarray | None, view: np.ndarray | None, samples: int) -> np.ndarray:
    """Return, for each sample, the rows that are its views of one ``kind``, in their order: int64 [samples, most views
    of any sample], filled with −1.

    Parameters
    ----------
    kind
        One of the names in `VIEWS`.
    parent
        [rows]: for a view the row of its sample, else −1; None without views.
    view
        [rows]: for a view the number of its kind in `VIEWS`, else 0; None without views.
    samples
        The number of all rows.
    """
    if parent is None:
        return np.full((samples, 0), -1)
    rows = np.flatnonzero(view == VIEWS[kind])
    rows = rows[np.argsort(parent[rows], kind="stable")]  # sample by sample
    count = np.bincount(parent[rows], minlength=samples)
    table = np.full((samples, int(count.max(initial=0))), -1)
    # The column of each view: its position among all views minus that of the first view of its sample.
    column = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    table[parent[rows], column] = rows
    return table
