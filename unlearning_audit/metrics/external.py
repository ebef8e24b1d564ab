"""All metrics that external logits allow; the others are empty with the reason."""

from dataclasses import replace

import numpy as np

from unlearning_audit import stats
from unlearning_audit.adversary.external_case import ExternalCase
from unlearning_audit.artifacts.contributions import OF_ITSELF, OF_SAMPLES, Contribution, Standard, single
from unlearning_audit.artifacts.rows import Row
from unlearning_audit.metrics import (
    _contents,
    _game,
    _klom,
    _update,
    accuracy,
    blind,
    competition,
    one_run,
    published,
    row,
    ruli,
    swap,
    texts,
)
from unlearning_audit.metrics import records as lists
from unlearning_audit.metrics.accuracy import QUANTITIES as OF_ACCURACY
from unlearning_audit.metrics.blind import QUANTITIES as OF_BLIND
from unlearning_audit.metrics.competition import QUANTITIES as OF_COMPETITION
from unlearning_audit.metrics.competition import Models
from unlearning_audit.metrics.one_run import QUANTITIES as OF_ONE_RUN
from unlearning_audit.metrics.published import QUANTITIES as OF_PUBLISHED
from unlearning_audit.metrics.records import QUANTITIES as OF_RECORDS
from unlearning_audit.metrics.ruli import QUANTITIES as OF_RULI
from unlearning_audit.metrics.swap import QUANTITIES as OF_SWAP
from unlearning_audit.metrics.texts import QUANTITIES as OF_TEXTS
from unlearning_audit.plugins.settings import Settings
from unlearning_audit.randomness.keyed import generator
from unlearning_audit.stats import crossed, separation

NEEDS = ("imported",)
DEFAULT = "imported"
#: Metrics whose options it takes.
READS = ("accuracy", "swap", "competition", "ruli", "one_run", "published", "records")

QUANTITIES = (
    *OF_PUBLISHED, *OF_ACCURACY, *OF_BLIND, *OF_COMPETITION, *OF_ONE_RUN, *OF_RECORDS, *OF_RULI, *OF_SWAP, *OF_TEXTS,
)  # fmt: skip


class Options(Settings):
    """``fpr`` at which TPR is read. The metrics competition and ruli have options of their own."""

    fpr: tuple[float, ...] = (0.01, 0.001)


def rows(case: ExternalCase, options: Options, rng: np.random.Generator) -> list[Row]:
    """Accuracies and AUC of phi always; attacks, Q, the competition's score, RULI and one-run audit where possible."""
    if case.published is not None:
        return [*published.rows(case, _published(case), rng), *texts.rows(case, texts.Options(), rng)]
    return [
        *_accuracies(case),
        *_labels(case, rng),
        *_phi(case, options),
        *_attacks(case, options),
        *_competition(case),
        *_ruli(case),
        *_audit(case),
        *lists.summary(_listed(case)[0], _rate(case)),
    ]


def records(case: ExternalCase, options: Options) -> list[dict]:
    """A line for each forgotten record, held against held-out ones where sides are a fair draw, else against what
    retrained models say of the same record; none where there is no such yardstick."""
    lines, unseen = ([], {}) if case.published is not None else _listed(case)
    return _contents.shown(lines, case.data, lists.Options(**case.options.get("records", {})).examples, unseen)


def _listed(case: ExternalCase) -> tuple[list[dict], lists.Unseen]:
    member, phi = case.membership, case.answers(case.unlearned_files).phi(case.labels)
    retrain = case.others.get("retrain")
    if fair(case) and member.heldout.any(axis=1).all():
        return lists.against_heldout(case, member, lists.usable(case, phi, member), _rate(case))
    if retrain is None or not case.same_samples("retrain"):
        return [], {}
    retrained = retrain.answers(retrain.unlearned_files).phi(retrain.labels)
    training = retrain.membership.retain
    lines = lists.against_retrained(case, member, phi, retrained=retrained, training=training, rate=_rate(case))
    return lines, {}


def _rate(case: ExternalCase) -> float:
    return lists.Options(**case.options.get("records", {})).rate


def fair(case: ExternalCase) -> bool:
    """Whether forgotten and held-out samples are a fair draw: by coins, by swapping, or because the owner says so."""
    return case.membership.pair is not None or not swapped(case) or case.design in ("swapped", "random")


#: What decides, by the metrics of which this is made; confidence alone where no attack was asked.
DECIDES = {
    "auc": Standard(0.5, 1, "auc", chance=OF_SAMPLES, lowest=0.0, highest=1.0),
    **swap.DECIDES,
    **one_run.DECIDES,
    **competition.DECIDES,
    **ruli.DECIDES,
}


def contributions(case: ExternalCase, options: Options) -> dict[str, Contribution]:
    """Those of every metric that the populations allow.

    Where forgotten and held-out samples are no fair draw, they may differ by themselves: then only retrained models on
    the same samples say what retraining reads.
    """
    if case.published is not None:
        return published.contributions(case, _published(case))
    member, parts = case.membership, accuracy.contributions(case, accuracy.Options())
    apart = {}
    if member.heldout.any(axis=1).all() and member.forget.any(axis=1).all():
        phi = case.answers(case.unlearned_files).phi(case.labels)
        scores = case.scores if case.scores_file else {}
        coins = _or_nothing(lambda: one_run.contributions(case, one_run.Options(**case.options["one_run"])))
        apart = coins or swap.advantages(scores, phi, member) or {"auc": _confidence(case, phi)}
        parts |= _update.contributions(case, member)
    parts |= apart if fair(case) else _by_models(apart)
    if not _apart(case):
        retrain, control = (case.others.get(name) for name in ("retrain", "retrain_control"))
        phi = [None if population is None else _models(population).phi for population in (case, retrain, control)]
        options = competition.Options(**case.options["competition"])
        forget = np.flatnonzero(member.forget.any(axis=0))
        rng = generator(case.seed, "competition")
        parts |= _or_nothing(lambda: competition.over_null(*phi, forget, options, rng))
        parts |= _or_nothing(lambda: _klom.contributions(*phi, forget, options)) if phi[1] is not None else {}
    if not _unasked(case):
        options, columns = ruli.Options(**case.options["ruli"]), np.arange(len(case.data.y))
        ratios = _or_nothing(lambda: ruli.aucs(*_audited(case), options, columns))
        parts |= ratios if fair(case) else _by_models(ratios)
    return parts


def _by_models(parts: dict[str, Contribution]) -> dict[str, Contribution]:
    """The same where theory does not know what retraining reads."""
    return {
        name: replace(part, standard=replace(part.standard, ideal=np.nan, chance=OF_ITSELF))
        for name, part in parts.items()
    }


def _published(case: ExternalCase) -> published.Options:
    return published.Options(**case.options.get("published", {}))


def _or_nothing(build) -> dict[str, Contribution]:
    """What ``build`` returns; nothing where the populations do not allow it, which `rows` says in words."""
    try:
        return build()
    except ValueError:
        return {}


def _confidence(case: ExternalCase, phi: np.ndarray) -> Contribution:
    rules = _rules(case)
    part = separation.auc(score=phi[:, rules.columns], positive=rules.forget, negative=rules.heldout)
    places = {"unit": case.membership.block, "split": case.membership.split, "index": rules.columns}
    return single(**vars(part), **places, standard=DECIDES["auc"])


def swapped(case: ExternalCase) -> str:
    """Why the target models are not pairs of swapped splits; "" if they are (Tu, Hu & Ma 2024, §3.3)."""
    member = case.membership
    for block in np.unique(member.block):
        pair = member[member.block == block]
        numbers = np.unique(pair.split)
        if len(numbers) != 2:
            return f"block {block} has {len(numbers)} splits, a swapped pair has two: see split.npy and block.npy"
        sides = [pair[pair.split == number] for number in numbers]
        for number, side in zip(numbers, sides, strict=True):
            if (side.forget != side.forget[0]).any() or (side.heldout != side.heldout[0]).any():
                return f"models of split {number} in block {block} differ in forget or heldout"
        (f, t), (f_other, t_other) = ((side.forget[0], side.heldout[0]) for side in sides)
        if not (np.array_equal(f, t_other) and np.array_equal(t, f_other)):
            return f"in block {block} the forget set of one split is not the heldout set of the other"
    return ""


def _nothing(metric: str, why: str, attack: str = "", role: str = "") -> Row:
    return row(metric=metric, attack=attack, role=role, estimate=stats.empty(n=0, note=why))


def _accuracies(case: ExternalCase) -> list[Row]:
    if np.ptp(case.labels) == 0:  # as of passages, which have no classes to be right about
        return accuracy.of(case, case.target)
    reasons = {
        "retain": "what models keep is unknown without train.npy",
        "heldout": "the models have seen every sample",
        "test": "no sample is marked in test.npy",
    }
    table = accuracy.of(case, case.target)
    have = {line.role for line in table}
    return table + [_nothing("accuracy", why, role=role) for role, why in reasons.items() if role not in have]


def _labels(case: ExternalCase, rng: np.random.Generator) -> list[Row]:
    """Blind check by labels: if they tell the two sides apart, no attack is valid. Labels that are all one cannot."""
    if not np.ptp(case.labels):
        return []
    try:
        table = blind.rows(case, blind.Options(features="none"), rng)
    except ValueError as error:
        return [_nothing("label_overlap", str(error), attack="blind")]
    return [line for line in table if line.metric.startswith("label_overlap")]


def _phi(case: ExternalCase, options: Options) -> list[Row]:
    """AUC of phi, which needs no threshold and so no shadow models."""
    member = case.membership
    if not member.heldout.any(axis=1).all():
        return [_nothing(metric, "a model has no heldout samples", attack="phi") for metric in ("auc", "mia_score")]
    rules = _rules(case)
    n = len(rules.columns)
    phi = case.answers(case.unlearned_files).phi(case.labels[..., rules.columns], rows=rules.columns)
    part = separation.auc(score=phi, positive=rules.forget, negative=rules.heldout)
    reading = crossed.read(crossed.combine([part], split=rules.split), share=_game.share(rules), unit=rules.block)
    (auc,) = crossed.estimates(reading, n=n)
    mia = stats.Estimate(1 - auc.value, 1 - auc.high, 1 - auc.low, n, auc.note)
    table = [row(attack="phi", metric="auc", estimate=auc), row(attack="phi", metric="mia_score", estimate=mia)]
    for fpr in options.fpr:
        table.append(row(attack="phi", metric="tpr_at_fpr", rate=fpr, estimate=swap.tpr(rules, phi, fpr)))
    return table


def _rules(case: ExternalCase) -> _game.Game:
    member = case.membership
    return _game.game(
        forget=member.forget, heldout=member.heldout, split=member.split, block=member.block, weight=member.weight
    )


def _attacks(case: ExternalCase, options: Options) -> list[Row]:
    """The SWAP test's rows; without swapped pairs those of single attacks, and none of Q."""
    scores = case.scores if case.scores_file else {}
    missing = [_nothing("advantage", why, attack=name) for name, why in case.missing.items()]
    why = swapped(case) or ("" if scores else "no attack could be asked")
    member = case.membership
    sets, empty = swap.adversaries(case) if scores else ({}, [])
    if why:
        sets, empty = {}, [_nothing("q", why, attack="adaptive")]
    sides = member.heldout.any(axis=1).all() and member.forget.any(axis=1).all()
    empty += _update.rows(case, member) if sides else []
    if not scores:
        return missing + empty
    try:
        table = swap.evaluate(
            scores=scores, forget=member.forget, heldout=member.heldout, split=member.split, block=member.block,
            weight=member.weight, sets={name: keys for name, keys in sets.items() if keys},
            rng=generator(case.seed, "swap"), fprs=options.fpr, draws=case.draws,
        )  # fmt: skip
    except ValueError as error:
        return [*missing, *empty, _nothing("advantage", str(error))]
    if why:
        table = [line for line in table if line.pair is None]
    return table + missing + empty


def _competition(case: ExternalCase) -> list[Row]:
    if why := _apart(case):
        return [_nothing("score", why)]
    retrain, control = (case.others.get(name) for name in ("retrain", "retrain_control"))
    retrain, control = (None if population is None else _models(population) for population in (retrain, control))
    try:
        return competition.evaluate(
            unlearned=_models(case),
            retrained=retrain,
            independent=control,
            options=competition.Options(**case.options["competition"]),
            rng=generator(case.seed, "competition"),
        )
    except ValueError as error:
        return [_nothing("score", str(error))]


def _apart(case: ExternalCase) -> str:
    """Why the competition's score cannot be computed, or ""."""
    populations = [("retrain", case.others.get("retrain")), ("retrain_control", case.others.get("retrain_control"))]
    missing = "there is no retrain/ (for retrain itself: retrain_control/) with logits to compare with"
    why = "" if populations[0][1] else missing
    forget = case.membership.forget
    if not why and (forget != forget[0]).any():
        why = "the models of target/ have different forget sets; the score compares models with one"
    for name, population in populations:
        if not why and population and not case.same_samples(name):
            why = f"{name}/ holds other samples than target/"
        if not why and population and (population.membership.forget != forget[0]).any():
            why = f"the models of {name}/ have other forget sets than those of target/"
    return why


def _models(case: ExternalCase) -> Models:
    member, test = case.membership, case.data.part == 1
    answers = case.answers(case.unlearned_files)
    right = answers.predicted() == case.labels
    forget = np.flatnonzero(member.forget.any(axis=0))
    labels = case.labels[..., forget]
    retain = None
    if member.retain.any(axis=1).all():
        retain = np.array([correct[mask].mean() for correct, mask in zip(right, member.retain, strict=True)])
    phi = answers.phi(labels, rows=forget)
    return Models(phi, retain, right[:, test].mean(1) if test.any() else None)


def _ruli(case: ExternalCase) -> list[Row]:
    if why := _unasked(case):
        return [_nothing("privacy_auc", why, attack="ruli")]
    try:
        targets, shadows = _audited(case)
        return ruli.evaluate(targets=targets, shadows=shadows, options=ruli.Options(**case.options["ruli"]))
    except ValueError as error:
        return [_nothing("privacy_auc", str(error), attack="ruli")]


def _unasked(case: ExternalCase) -> str:
    """Why RULI's question cannot be asked, or ""."""
    original, shadow, trained = map(case.others.get, ("original", "shadow", "shadow_original"))
    why = case.unlike("original", original) or ("" if shadow else "there is no shadow/ with logits")
    if not why and not case.same_samples("shadow"):
        why = "shadow/ holds other samples than target/"
    return why or shadow.unlike("shadow_original", trained, "shadow")


def _audited(case: ExternalCase) -> tuple[ruli.Population, ruli.Population]:
    """The targets and the shadow models of RULI."""
    original, shadow, trained, retrained = map(case.others.get, ("original", "shadow", "shadow_original", "retrain"))
    targets = _population(case, original, None if case.unlike("retrain", retrained) else retrained)
    return targets, _population(shadow, trained, None)


def _audit(case: ExternalCase) -> list[Row]:
    """The one-run audit: of canaries that pair.npy names, or of the two sides of swapped pairs."""
    why = swapped(case) if case.membership.pair is None else ""
    if why:
        return [_nothing("one_run_p", "there is no pair.npy that says which canaries a coin chose from", attack="phi")]
    try:
        return one_run.evaluate(case, one_run.Options(**case.options["one_run"]))
    except ValueError as error:
        return [_nothing("one_run_p", str(error), attack="phi")]


def _population(case: ExternalCase, original: ExternalCase, retrained: ExternalCase | None) -> ruli.Population:
    member, y = case.membership, case.labels
    phi = {
        name: None if answers is None else answers.answers(answers.unlearned_files).phi(y)
        for name, answers in (("original", original), ("unlearned", case), ("retrained", retrained))
    }
    return ruli.Population(**phi, train=member.train, forget=member.forget, heldout=member.heldout)
