"""Report samples that occur more than once: whether one copy is forgotten while another is retained."""

from collections import Counter
from typing import Any

from unlearning_audit.store.files import read_json


def read(order: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for every scenario and setting with numbers of exact copies.

    The specs of the jobs that loaded data and drew memberships have these counts. ``groups``: the number of groups of
    equal samples; ``pairs``: the number of pairs of equal training and test samples; both are 0 if the spec has none.
    Further counts are summed over the splits of all batches of models: ``forgotten`` and ``heldout`` samples, forgotten
    ones with a copy among the retained or the held-out ones (``forgotten_kept``, ``forgotten_heldout``), and held-out
    ones with a copy among the training samples (``heldout_trained``). A row lacks those of them that no spec has.

    Parameters
    ----------
    order
        For each scenario and setting, the path of the spec of the job of its ``data``, and those of its ``splits``.
    """
    rows = []
    for place in order:
        duplicates = read_json(place["data"]).get("duplicates", {})
        counts: Counter[str] = Counter()
        for path in place["splits"]:
            counts.update(read_json(path).get("copies", {}))
        where = {"scenario": place["scenario"], "setting": place["setting"]}
        groups, pairs = duplicates.get("groups", 0), duplicates.get("train_test_pairs", 0)
        rows.append({**where, "groups": groups, "pairs": pairs, **counts})
    return rows
