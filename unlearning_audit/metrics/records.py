"""Records: which forgotten samples are still recognised, at a false discovery rate."""

import numpy as np
from pydantic import Field

from unlearning_audit.adversary.case import Case
from unlearning_audit.artifacts.rows import Row
from unlearning_audit.metrics import row
from unlearning_audit.plugins.declarations import Quantity
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.stats import Estimate
from unlearning_audit.stats import records as record_stats

#: p-values of records are exact where forgotten and held-out ones are a fair draw; nothing is compared with retraining.
NEEDS = ("fair_draw",)
ALONE = True

#: So many numbers of samples stand in a note.
NAMED = 50

QUANTITIES = (
    Quantity(
        "records_recognised", "records recognised", "lower", ideal=0.0,
        reading="Share of forgotten samples that are listed as still recognised; at most one in ten of a "
        "list is false, on average.",
    ),
)  # fmt: skip


class Options(Settings):
    """``rate``: the share of a list that may be false on average."""

    rate: float = Field(0.1, gt=0, lt=1)


def rows(case: Case, options: Options, rng: np.random.Generator) -> list[Row]:
    """ "records_recognised" of all target models and of each pair: the share of forgotten samples of a split that the
    mean phi of its models sets apart from held-out ones.

    Conformal p-values and Benjamini and Hochberg's procedure (`stats.records`), a list for each split. The note counts
    and names the samples. A model that was broken on all samples lists none.
    """
    member = case.membership[case.target]
    phi = case.answers(case.unlearned_files).phi(case.labels_of(case.target), case.target)
    listed: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    for block, split in sorted(set(zip(member.block.tolist(), member.split.tolist(), strict=True))):
        models = (member.block == block) & (member.split == split)
        forget, heldout = (np.flatnonzero(side[models].all(axis=0)) for side in (member.forget, member.heldout))
        score = phi[models].mean(axis=0)
        if len(forget) and len(heldout):
            p = record_stats.conformal(score=score[forget], heldout=score[heldout])
            listed.setdefault(block, []).append((forget, record_stats.discoveries(p=p, rate=options.rate)))
    all_lists = [entry for lists in listed.values() for entry in lists]
    if not all_lists:
        return []
    pairs = [_row(lists, options.rate, pair=block) for block, lists in listed.items()] if len(listed) > 1 else []
    return [_row(all_lists, options.rate), *pairs]


def _row(lists: list[tuple[np.ndarray, np.ndarray]], rate: float, **place: int) -> Row:
    total, recognised = sum(len(records) for records, _ in lists), sum(int(marks.sum()) for _, marks in lists)
    names = np.unique(np.concatenate([records[marks] for records, marks in lists]))
    samples = ", ".join(map(str, names[:NAMED].tolist())) + (" …" if len(names) > NAMED else "")
    note = (
        f"{recognised} of {total}, of which at most {rate * recognised:.1f} are false on average"
        + f": samples {samples}" * bool(recognised)
    )
    estimate = Estimate(recognised / total, np.nan, np.nan, total, note)
    return row(metric="records_recognised", estimate=estimate, **place)
