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
