"""Records: which forgotten samples, and whose, are still recognised, at a false discovery rate."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import Field

from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import Estimate, Membership, Quantity, Row, Settings, _contents, or_none, row, stats
from unlearning_audit.stats import records as record_stats

#: p-values of records are exact where forgotten samples are a random draw; retrained models are not needed then.
NEEDS = ("fair_draw",)
DEFAULT = ("fair_draw", "one_forget_set", "imported")
ALONE = True

#: How many numbers of samples a note lists.
MOST_NUMBERS = 50

#: The confidence, which needs no attack; the control, which is not an attack.
PHI, CONTROL = "phi", "random"

#: What p-values compare a record with (column ``yardstick``): held-out records, or retrained models.
HELDOUT, RETRAINED = "heldout", "retrain"

QUANTITIES = (
    Quantity(
        "records_recognised", "records recognised", "lower", ideal=0.0,
        reading="Share of forgotten samples that are listed as still recognised; at most a tenth of a list is false, "
        "on average over audits, those with an empty list included.",
    ),
    Quantity(
        "people_recognised", "people recognised", "lower", ideal=0.0,
        reading="The same of those whose samples they are.",
    ),
)  # fmt: skip


class Options(Settings):
    """``rate``: the expected share of a list that is false; ``examples``: how many of a method's recognised records are
    shown with their picture, text or values, namely those with the least p-values."""

    rate: float = Field(0.1, gt=0, lt=1)
    examples: int = Field(12, ge=0)


Line = _contents.Line
Scores = dict[str, np.ndarray]  # attack → float64 [models, samples], larger = more likely forgotten
UnseenOfSplits = dict[tuple[int, int], _contents.Unseen]  # (pair, split) → samples that its models never saw


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return rows "records_recognised" of all target models, then of each pair if there are several: the share of
    forgotten samples that are listed as still recognised. [] without lines of records.

    If the data say whose samples they are, "people_recognised" follows, the share of people who are recognised. The
    notes count and name the samples.
    """
    lines, _unseen = _lines_and_unseen(evaluation, options)
    return summary(lines, options.rate)


def records(evaluation: Evaluation, options: Options) -> list[Line]:
    """Return a line for each record that the models of a split forgot, with the p-value that it was never seen and
    whether it is recognised (`evaluation.records.COLUMNS`); then a line for a never-seen record to show beside each
    record that is shown.

    A split is one of a pair of splits; the columns ``pair`` and ``split`` identify it. Of the recognised records of all
    splits, the ``options.examples`` with the least p-values are shown: their lines contain the picture, text or values.
    In a text, each token has its surprise, −log p as the mean over the models of the split, if it is known.
    """
    lines, unseen = _lines_and_unseen(evaluation, options)
    return _contents.with_contents(lines, evaluation.data, options.examples, unseen, _contents.surprise(evaluation))


def _lines_and_unseen(evaluation: Evaluation, options: Options) -> tuple[list[Line], UnseenOfSplits]:
    """Return a line for each forgotten record, and (pair, split) → the samples that its models never saw, with scores.

    Each record is compared with held-out samples of the same models. If held-out samples are missing or not a random
    draw, φ of each record is compared with that of retrained models. Then the dict of never-seen samples is empty, and
    without retrained models there are no lines.
    """
    member = evaluation.membership[evaluation.target]
    # ``fair``: forgotten and held-out samples are a random draw
    if not (evaluation.fair and member.heldout.any(axis=1).all()):
        return by_retraining(evaluation, options.rate), {}
    phi = evaluation.audited.phi()
    return against_heldout(evaluation, member, usable_scores(evaluation, phi, member), options.rate)


def by_retraining(evaluation: Evaluation, rate: float) -> list[Line]:
    """Return a line for each forgotten record, recognised or not, by comparison with retrained models
    (`against_retrained`); [] if there are no retrained models of the same samples, or if retraining failed. ``rate`` is
    the expected share of false records among those that are recognised."""
    retraining = evaluation.comparable("retrain")
    # φ, or None if retraining failed, since that is no fault of the method. The lambda ignores the files that `or_none`
    # passes to it, because this group of models has them already.
    retrained = None if retraining is None else or_none(lambda _: retraining.phi(), retraining.files)
    if retraining is None or retrained is None:
        return []
    member, phi = evaluation.membership[evaluation.target], evaluation.audited.phi()
    training = retraining.membership.retain  # a retrained model was trained on what it had to retain
    return against_retrained(evaluation, member, phi, retrained=retrained, training=training, rate=rate)


def usable_scores(evaluation: Evaluation, phi: np.ndarray, member: Membership) -> Scores:
    """Return name → scores float64 [models, samples], by which records may be recognised: φ, and every attack whose
    scores are finite on all forgotten and held-out samples. The random control is left out."""
    sides = member.forget | member.heldout
    scores = {PHI: phi}
    for (attack, form), (score, _) in evaluation.scores.items():
        if attack != CONTROL and np.isfinite(score[sides]).all():
            scores[f"{attack}/{form}" if form else attack] = score
    return scores


def against_heldout(
    evaluation: Evaluation, member: Membership, scores: Scores, rate: float
) -> tuple[list[Line], UnseenOfSplits]:
    """Return a line for each forgotten record, compared with held-out samples of the same models, and (pair, split) →
    these held-out samples with their scores.

    The function is for forgotten samples that are a random draw. P-values are conformal: (1 + the number of held-out
    samples that score at least as high) / (1 + the number of all). A score is the mean over the split's models, by the
    attack that separates best in other pairs, or in the other split of the only pair (φ if there is none). It is turned
    round where forgotten samples score lower there. A split without forgotten or held-out samples has no lines.

    Parameters
    ----------
    member
        The memberships of the audited models.
    scores
        Name → float64 [models, samples].
    rate
        The expected share of the list that is false.
    """
    # The (pair, split) of every model, each once.
    splits, keys = [], set(zip(member.block.tolist(), member.split.tolist(), strict=True))
    for pair, number in sorted(keys):
        models = (member.block == pair) & (member.split == number)
        forget, heldout = (np.flatnonzero(side[models].all(axis=0)) for side in (member.forget, member.heldout))
        if len(forget) and len(heldout):
            means = {name: score[models].mean(axis=0) for name, score in scores.items()}
            splits.append(_Split(pair, number, int(models.sum()), forget, heldout, means))
    lines, unseen = [], {}
    for split in splits:
        attack, direction = _strongest_attack(split, splits)
        score = direction * split.means[attack]
        p = record_stats.conformal(score=score[split.forget], heldout=score[split.heldout])
        place: Line = {"pair": split.block, "split": split.split, "models": split.models, "yardstick": HELDOUT}
        place["attack"] = attack if direction > 0 else f"{attack} turned round"
        lines += lines_of(evaluation, place, split.forget, score[split.forget], p)
        unseen[split.block, split.split] = _contents.Unseen(split.heldout, score[split.heldout])
    return with_recognised(lines, rate), unseen


def against_retrained(
    evaluation: Evaluation,
    member: Membership,
    phi: np.ndarray,
    *,
    retrained: np.ndarray,
    training: np.ndarray,
    rate: float,
) -> list[Line]:
    """Return a line for each forgotten record, whose φ is compared with that of retrained models.

    The function is for forgotten samples that are not a random draw. Each forget set is compared only with retrained
    models that saw none of it. A forget set has no lines if fewer than two retrained models saw none of it, because a
    single model does not show how such models vary. ``p`` is of a one-sided t test that the audited models are no surer
    of the record than retrained ones.

    Parameters
    ----------
    member
        The memberships of the audited models.
    phi
        float64 [models, samples]: φ of the audited models.
    retrained
        float64 [retrained models, samples]: φ of the retrained models.
    training
        bool [retrained models, samples]: the samples that each retrained model was trained on.
    rate
        The expected share of the list that is false.
    """
    lines = []
    for forget in np.unique(member.forget, axis=0):
        # The audited models with this forget set, and the retrained models that saw none of it.
        audited, ignorant = (member.forget == forget).all(axis=1), ~(training & forget).any(axis=1)
        if ignorant.sum() < 2:
            continue
        samples = np.flatnonzero(forget)
        phi_audited, phi_retrained = phi[audited][:, samples], retrained[ignorant][:, samples]
        place: Line = {"pair": int(member.block[audited][0]), "split": int(member.split[audited][0])}
        place |= {"models": len(phi_audited), "attack": PHI, "yardstick": RETRAINED}
        p = record_stats.against_retrained(audited=phi_audited, retrained=phi_retrained)
        lines += lines_of(evaluation, place, samples, phi_audited.mean(axis=0), p)
    return with_recognised(lines, rate)


def lines_of(evaluation: Evaluation, place: Line, samples: np.ndarray, score: np.ndarray, p: np.ndarray) -> list[Line]:
    """Return a line for each of the records ``samples`` int64 [records] of one split, with ``score`` and ``p`` float64
    [records].

    If the data say whose samples they are, lines also name the person, with Simes' p-value of all records of the
    person.

    Parameters
    ----------
    place
        Column → value that all of these lines share.
    """
    data = evaluation.data
    columns = {"sample": samples, "row": data.index[samples], "label": data.y[samples], "score": score, "p": p}
    if data.subject is not None:
        columns["person"] = data.subject[samples]
        people, p_people = record_stats.simes(p=p, group=columns["person"])
        columns["p_person"] = p_people[np.searchsorted(people, columns["person"])]  # ``people`` is sorted
    records = zip(*(column.tolist() for column in columns.values()), strict=True)  # the values of each record
    # Kind and content follow later, for the records that are shown (`_contents`).
    return [{**place, "kind": "", "content": "", **dict(zip(columns, values, strict=True))} for values in records]


def with_recognised(lines: list[Line], rate: float) -> list[Line]:
    """Return the lines of all splits with the columns "recognised" and "rate", and "person_recognised" if lines name
    persons. ``rate`` is the expected share of the whole list that is false.

    One list covers all splits (Benjamini and Hochberg). If each split had a list at this rate, some list would nearly
    always include a false record where splits are many.
    """
    recognised = record_stats.discoveries(p=np.array([line["p"] for line in lines]), rate=rate)
    # A person's records have one p-value in common, which counts once.
    p_people = {_person_key(line): line["p_person"] for line in lines if "person" in line}
    people = record_stats.discoveries(p=np.array(list(p_people.values())), rate=rate)
    column_of = {person: {"person_recognised": int(found)} for person, found in zip(p_people, people, strict=True)}
    return [
        {**line, "recognised": int(found), "rate": rate, **column_of.get(_person_key(line), {})}
        for line, found in zip(lines, recognised, strict=True)
    ]


def _person_key(line: Line) -> tuple[int, int, int | None]:
    """Return pair, split and person of a line, which identify a p-value of a person. The person is None if lines name
    no persons."""
    return line["pair"], line["split"], line.get("person")


@dataclass(eq=False)
class _Split:
    """One split of a pair of splits.

    Parameters
    ----------
    block, split
        The number of the pair, and the number of the split in it.
    models
        How many models the split has.
    forget, heldout
        int64: the numbers of the samples that these models forgot, and of those that they never saw.
    means
        Attack → the mean of its scores over these models, float64 [samples].
    """

    block: int
    split: int
    models: int
    forget: np.ndarray
    heldout: np.ndarray
    means: Scores

    @cached_property
    def leads(self) -> dict[str, float]:
        """Return attack → AUC − ½ of the forgotten against the held-out samples by its mean scores. The result is
        cached, because every other split needs it."""
        rows = np.concatenate([self.forget, self.heldout])
        positive = np.arange(len(rows)) < len(self.forget)
        # The AUC is the mean placement of the positives.
        return {
            attack: float(stats.placements(score=mean[rows], positive=positive)[positive].mean()) - 0.5
            for attack, mean in self.means.items()
        }


def _strongest_attack(split: _Split, splits: list[_Split]) -> tuple[str, int]:
    """Return the attack for ``split`` that separates best in other pairs among ``splits``, and its direction: 1, or −1
    where forgotten samples look less familiar.

    Other pairs draw their samples independently, so the choice does not depend on the split. If there is no other pair,
    the attack is chosen on the other split of the pair, in which forgotten and held-out samples are exchanged. An
    attack that separates the two by chance in one split has the opposite sign in the other, so this choice is cautious.
    φ with direction 1 is returned if there is no other split.
    """
    of_other_pairs = [other for other in splits if other.block != split.block]
    others = of_other_pairs or [other for other in splits if other is not split]
    if not others:
        return PHI, 1
    leads = {attack: float(np.mean([other.leads[attack] for other in others])) for attack in split.means}
    best = max(leads, key=lambda attack: abs(leads[attack]))
    return best, 1 if leads[best] >= 0 else -1


def summary(lines: list[Line], rate: float) -> list[Row]:
    """Return the rows of the shares of records and of people that are recognised, over all lines, then over the lines
    of each pair if there are several pairs; [] without lines."""
    pairs = sorted({line["pair"] for line in lines})
    table = _rows(lines, rate) if lines else []
    single_pairs = pairs if len(pairs) > 1 else []  # the rows of the only pair are those of all lines
    for pair in single_pairs:
        table += _rows([line for line in lines if line["pair"] == pair], rate, pair=pair)
    return table


def _rows(lines: list[Line], rate: float, **place: Any) -> list[Row]:
    """Return the rows of some lines: the share of records that are recognised and, if lines name persons, of people.
    ``place``: the field ``pair`` of the rows; empty for the lines of all pairs."""
    samples = sorted({line["sample"] for line in lines if line["recognised"]})
    recognised, total = sum(line["recognised"] for line in lines), len(lines)
    note = f"{recognised} of {total}"
    if not place:  # the lines of one pair are a part of a list, and a part has no rate of its own
        note += f"; in such lists at most {rate:.0%} are false, on average over audits"
    if samples:
        more = " …" if len(samples) > MOST_NUMBERS else ""
        note += f": samples {', '.join(map(str, samples[:MOST_NUMBERS]))}{more}"
    estimate = Estimate(recognised / total, low=np.nan, high=np.nan, n=total, note=note)
    table = [row(metric="records_recognised", estimate=estimate, **place)]
    people = {_person_key(line): line["person_recognised"] for line in lines if "person" in line}
    if people:
        known, everyone = sum(people.values()), len(people)
        estimate = Estimate(known / everyone, low=np.nan, high=np.nan, n=everyone, note=f"{known} of {everyone}")
        table.append(row(metric="people_recognised", estimate=estimate, **place))
    return table
