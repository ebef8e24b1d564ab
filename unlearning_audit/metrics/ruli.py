"""RULI: privacy leakage and efficacy of unlearning by per-sample likelihood ratios (Naderloui et al. 2025)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field, PositiveFloat

from unlearning_audit.evaluation import logistic
from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import Group, Row, _game, _reference, groups, or_nothing, or_reason, rates, table
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity
from unlearning_audit.plugins.settings import FalsePositiveRates, Settings
from unlearning_audit.stats.readings import Question, readings, tprs

NEEDS = ("target_samples",)
DEFAULT = ("target_samples", "imported")

QUANTITIES = (
    Quantity(
        "privacy_auc", "privacy AUC", "lower", primary=True, system="RULI", ideal=0.5,
        attacks=("ruli", "u_lira", "population"),
        reading="AUC of the likelihood ratio that tells unlearned from held-out samples: 0.5 = chance.",
        columns=(Column(7, "privacy AUC", besides=True),),
        comparisons=(
            Comparison("RULI privacy AUC", 8, attack="ruli", ideal=0.5, two_sided=True, shadows=("ruli",)),
            Comparison("U-LiRA AUC", 10, attack="u_lira", ideal=0.5, two_sided=True, shadows=("ruli",)),
            Comparison("population AUC", 11, attack="population", ideal=0.5, two_sided=True, shadows=("ruli",)),
        ),
    ),
    Quantity(
        "efficacy_auc", "efficacy AUC", "lower", ideal=0.5, attacks=("ruli",),
        reading="AUC of the likelihood ratio that tells unlearned from never trained: 0.5 = like retraining.",
        columns=(Column(8, "efficacy AUC", besides=True),),
        comparisons=(
            Comparison(
                "RULI efficacy AUC", 9, attack="ruli", ideal=0.5, two_sided=True, retrained=True, shadows=("ruli",)
            ),
        ),
    ),
    *(Quantity(f"{test}_auc", attacks=("ruli",)) for test in ("trained", "remained")),
    Quantity("privacy_accuracy_over_population", attacks=("ruli",)),
    Quantity("privacy_tpr_at_1pct_fpr_over_population", "privacy TPR at 1 % FPR over population", attacks=("ruli",)),
    *(
        Quantity(f"{test}_{statistic}", f"{test} {label}", attacks=("ruli", "u_lira", "population"))
        for test in ("privacy", "efficacy", "trained", "remained")
        for statistic, label in (("accuracy", "accuracy"), ("tpr_at_*pct_fpr", "TPR at * % FPR"), ("roc", "ROC"))
    ),
)  # fmt: skip


#: Option of the protocol → option of this metric that it must not be less than: one model of each block forgets a
#: sample.
PROTOCOL_MINIMUM = {"shadow_blocks": "minimum"}

Side = tuple[np.ndarray, np.ndarray, str]  # φ and which of it counts, [models, samples], and what to call it


class Options(Settings):
    """``density`` and ``bandwidth`` of the distributions of phi (``pooled``: Gaussians of one spread); ``clip``: the
    probability at which p_y is cut (None: not at all); ``test_model``: the model that is queried for held-out samples
    in the efficacy test, a truly ``retrained`` or the ``original`` one; ``population``: whether the pooled attack
    learns from ``unlearned`` or from ``trained`` shadow models; ``fpr``: the false positive rates at which TPR is
    given; ``minimum`` models in every distribution. The published code: bandwidth 1, clip 1e-6, test_model original,
    population trained."""

    density: Literal["kde", "gaussian", "pooled"] = "kde"
    bandwidth: Literal["silverman"] | PositiveFloat = "silverman"
    clip: float | None = Field(default=None, gt=0, lt=0.5)
    test_model: Literal["retrained", "original"] = "retrained"
    population: Literal["unlearned", "trained"] = "unlearned"
    fpr: FalsePositiveRates = (0.001, 0.01, 0.05)
    minimum: int = Field(default=3, ge=2)


@dataclass(frozen=True)
class Population:
    """phi and memberships of models that were trained and then unlearned.

    ``original`` and ``unlearned`` float64 [models, samples]: phi before and after unlearning; ``train``, ``forget`` and
    ``heldout`` bool [models, samples]; ``retrained`` float64 [models, samples]: phi of models trained anew without each
    model's forget set, needed of targets only.
    """

    original: np.ndarray
    unlearned: np.ndarray
    train: np.ndarray
    forget: np.ndarray
    heldout: np.ndarray
    retrained: np.ndarray | None = None

    def columns(self, keep: np.ndarray) -> "Population":
        """Return the population with the samples ``keep`` only."""
        return self._changed(lambda values: values[:, keep])

    def models(self, keep: np.ndarray) -> "Population":
        """Return the population with the models ``keep`` only."""
        return self._changed(lambda values: values[keep])

    def clipped(self, probability: float | None) -> "Population":
        """Return the population with phi cut where p_y falls below ``probability`` or exceeds its complement; unchanged
        if ``probability`` is None."""
        return self._changed(lambda of: of if of.dtype == bool else _reference.clip(of, probability))

    def _changed(self, change: Callable[[np.ndarray], np.ndarray]) -> "Population":
        """Return the population with ``change`` applied to every array."""
        arrays: dict[str, Any] = {name: None if of is None else change(of) for name, of in vars(self).items()}
        return Population(**arrays)


def check(targets: Population, shadows: Population) -> None:
    """Raise ValueError if a population holds phi that is not finite, and if a target has the same phi as a shadow
    model, which must not be its own reference."""
    for name, population in (("targets", targets), ("shadows", shadows)):
        for field, value in vars(population).items():
            if value is not None and not np.isfinite(value).all():
                raise ValueError(f"{name}.{field} holds NaN or infinite phi: these models cannot be scored")
    for name in ("original", "unlearned"):
        audited, pool = getattr(targets, name), getattr(shadows, name)
        for m, values in enumerate(audited):
            if (pool == values).all(axis=1).any() and np.ptp(values) > 0:
                raise ValueError(f"target {m} is also a shadow model ({name}): leave it out of its own reference")


CURVES = ("privacy", "efficacy")
CURVE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""The tests of RULI whose ROC curve is kept, at these rates of false alarms."""


def rows(evaluation: Evaluation, options: Options, rng: np.random.Generator) -> list[Row]:
    """Return accuracy, AUC and TPR of RULI's tests on all target samples, then on vulnerable and on protected ones
    (field ``target``) if there are both kinds.

    Held-out samples are evaluated on retrained models; if the method itself retrains, on an independent population, if
    there is one. With a selection of samples, the accuracy on vulnerable samples that were retained follows (table 3),
    with role retain and target vulnerable. If the models do not allow the tests, one row has the reason. Raises
    ValueError without shadow models.
    """
    return or_reason(evaluation, lambda: _rows(evaluation, options), "privacy_auc", "ruli")


def _rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return the rows of all tests on all target samples, and on each kind of them ("vulnerable", "protected") if the
    samples are of several kinds; then the accuracy on retained vulnerable samples."""
    columns = _columns(evaluation)
    targets, shadows = populations(evaluation, columns)
    kinds = {"": np.ones(int(columns.sum()), bool)}
    if evaluation.selection is not None:
        kinds |= {kind: getattr(evaluation.selection, kind)[columns] for kind in ("vulnerable", "protected")}
    table = []
    for kind, audited in kinds.items():
        if audited.any() and (not kind or not audited.all()):
            tests = evaluate(targets.columns(audited), shadows.columns(audited), options, curve=CURVE)
            table += [replace(test, target=kind) for test in tests]
    vulnerable = columns & evaluation.selection.vulnerable if evaluation.selection is not None else ~columns & columns
    return table + _kept_and_vulnerable(evaluation, vulnerable) if vulnerable.any() else table


#: Retraining leaves nothing that distinguishes forgotten from held-out samples, or unlearned from retrained models.
DECIDES = {
    name: DecisionRule(1, "auc", ideal=0.5, units="target models", lowest=0.0, highest=1.0)
    for name in ("privacy_auc", "efficacy_auc")
}


def effects(evaluation: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "privacy_auc" and "efficacy_auc" → the AUC of RULI's test of membership, and of its test against
    retraining, for each target model, which is a unit of its own. A test that lacks its models is left out. {} without
    shadow models, or if imported models do not allow the tests."""
    if evaluation.target.all() and not evaluation.imported:
        return {}
    columns = _columns(evaluation)
    return or_nothing(evaluation, lambda: aucs(*populations(evaluation, columns), options, np.flatnonzero(columns)))


def _columns(evaluation: Evaluation) -> np.ndarray:
    """Return which samples are target samples, bool [samples]; all if memberships have no ``weight``."""
    weight = evaluation.membership.weight
    return np.ones(len(evaluation.data.y), bool) if weight is None else weight > 0


def aucs(targets: Population, shadows: Population, options: Options, index: np.ndarray) -> dict[str, Effect]:
    """Return the AUC of the privacy and the efficacy test for each target model from two populations.

    ``index`` int64 [samples]: the numbers of their samples. An AUC above .5 means that forgotten samples look more
    familiar than never-seen ones.
    """
    keep = (targets.forget | targets.heldout).any(axis=0)
    # The ratio does not show whether forgotten samples look more familiar than never-seen ones or less.
    forgot, unseen = (shadows.unlearned[mask & keep] for mask in (shadows.forget, shadows.heldout))
    way = -1 if forgot.size and unseen.size and forgot.mean() < unseen.mean() else 1
    parts = {}
    for (attack, name), test in score(targets, shadows, options).items():
        metric = f"{name}_auc"
        if attack != "ruli" or metric not in DECIDES or test.missing:
            continue
        usable = test.positive.any(axis=1) & test.negative.any(axis=1)
        if usable.any():
            part = _game.auc(test.score[usable], test.positive[usable], test.negative[usable])
            parts[metric] = single(
                value=0.5 + way * (part.value - 0.5), influence=way * part.influence, imagined=way * part.imagined,
                unit=np.flatnonzero(usable), index=index[keep], rule=DECIDES[metric],
            )  # fmt: skip
    return parts


def populations(evaluation: Evaluation, columns: np.ndarray) -> tuple[Population, Population]:
    """Return φ and memberships of the targets, and of the shadow models, on the samples ``columns`` bool [samples]."""
    targets, shadows = evaluation.sides()
    return population(targets, columns), population(shadows, columns)


def population(side: dict[str, Group | None], columns: np.ndarray) -> Population:
    """Return φ before and after unlearning, and of retrained models if there are any, with memberships, on the samples
    ``columns`` bool [samples].

    ``side``: "original", "unlearned" and "retrained" → models, or None if there are no such models.
    """
    unlearned = side["unlearned"]
    assert unlearned is not None
    parts: dict[str, Any] = {name: None if models is None else models.phi(columns) for name, models in side.items()}
    parts |= {name: getattr(unlearned.membership, name)[:, columns] for name in ("train", "forget", "heldout")}
    return Population(**parts)


def _kept_and_vulnerable(evaluation: Evaluation, vulnerable: np.ndarray) -> list[Row]:
    """Return the accuracy of the unlearned targets on vulnerable target samples that they retain, as one row.
    ``vulnerable`` bool [samples]."""
    member = evaluation.membership[evaluation.target]
    logits = evaluation.outputs(evaluation.unlearned_files).of(evaluation.target, vulnerable)
    hit, kept = rates.predicted(logits) == evaluation.data.y[vulnerable], member.retain[:, vulnerable]
    estimate = rates.rate(hit=hit, rows=kept, **groups(member))
    return table({"accuracy": estimate}, role="retain", target="vulnerable")


def evaluate(targets: Population, shadows: Population, options: Options, *, curve: tuple[float, ...] = ()) -> list[Row]:
    """Return rows of every test: accuracy at ratio 1, AUC and TPR at each FPR, as means over targets with intervals.

    For the tests in `CURVES`, the TPR at each FPR of ``curve`` follows, as "…_roc" with its ``rate``. The audit is of
    all samples that some target forgot or held out. Accuracy is ½(TPR + TNR). Intervals cover the samples and, with two
    targets or more, the targets. Raises ValueError for models that cannot be compared, and for samples with too few
    shadow models (`score`).
    """
    lines = []
    for (attack, name), test in score(targets, shadows, options).items():
        numbers = readings(test, fpr=options.fpr)
        lines += table({f"{name}_{metric}": number for metric, number in numbers.items()}, attack=attack)
        for rate, tpr in tprs(test, fpr=curve if attack == "ruli" and name in CURVES else ()).items():
            lines += table({f"{name}_roc": tpr}, attack=attack, rate=rate)
    return lines + over_population(lines)


def over_population(rows: list[Row]) -> list[Row]:
    """Return how much more RULI's attack for each sample finds than one attack for all samples (section 6.2.2 of the
    paper).

    For accuracy it is RULI's divided by that of the population attack, minus 1; for TPR at 1 % FPR it is the ratio.
    Empty, with the reason, where the population attack finds nothing or one of the two is missing. There are no
    intervals, because both rest on the same models and samples.
    """
    values = {(row.attack, row.metric): row for row in rows}
    ratios = []
    for metric, less in (("privacy_accuracy", 1.0), ("privacy_tpr_at_1pct_fpr", 0.0)):
        ratio, population_value = values.get(("ruli", metric)), values.get(("population", metric))
        if ratio is None or population_value is None:
            continue
        why = "a ratio of two numbers, without an interval"
        if unread := [part for part in (ratio, population_value) if np.isnan(part.value)]:
            why = unread[0].note
        elif not population_value.value > 0:
            why = "the population attack finds nothing, so there is no ratio"
        value = ratio.value / population_value.value - less if population_value.value > 0 else np.nan
        ratios.append(Row(f"{metric}_over_population", value, n=ratio.n, note=why, attack="ruli"))
    return ratios


def score(targets: Population, shadows: Population, options: Options) -> dict[tuple[str, str], Question]:
    """Score all tests of RULI's table 1, U-LiRA and the attack on all samples together. Return (attack, test) → the
    scores of target models, with which samples are positives and negatives.

    Q_u, Q_h and Q_r are phi of unlearned shadow models that forgot, never saw and retained the sample. Q_i and Q_R are
    phi of original shadow models that did and did not train on it. The tests are:

    * privacy: Q_u against Q_h, on the unlearned target; * efficacy: Q_u against Q_R, on the unlearned target for
    forgotten and on the retrained one for held-out samples; * trained: Q_i against Q_R, on the original target; *
    remained: Q_r against Q_h, on the unlearned target.

    U-LiRA is the privacy test with Gaussians of Q_u and Q_R, of one spread if RULI's have. Raises ValueError for phi
    that is not finite, a target that is also a shadow model, and samples with too few shadow models in a distribution.
    """
    check(targets, shadows)
    keep = (targets.forget | targets.heldout).any(axis=0)
    if not keep.any():
        raise ValueError("no audited sample is forgotten or held out by any target")
    targets, shadows = (p.columns(keep).clipped(options.clip) for p in (targets, shadows))
    retain, remained = (p.train & ~p.forget for p in (targets, shadows))

    def ratio(at: np.ndarray, over: Side, under: Side, kind: _reference.Kind = options.density) -> np.ndarray:
        """Return log p(at | over) − log p(at | under), float64 of the shape of ``at``, φ of target models. ``over`` and
        ``under``: φ of shadow models with the mask and the name of the distribution."""
        how: dict[str, Any] = {"kind": kind, "bandwidth": options.bandwidth, "minimum": options.minimum}
        numerator, denominator = (
            _reference.log_density(phi, mask, at, side=side, **how) for phi, mask, side in (over, under)
        )
        return np.asarray(numerator - denominator)

    gaussian: _reference.Kind = "pooled" if options.density == "pooled" else "gaussian"
    q_u = shadows.unlearned, shadows.forget, "forgotten (unlearned)"
    q_h = shadows.unlearned, shadows.heldout, "held out (unlearned)"
    q_r = shadows.unlearned, remained, "kept (unlearned)"
    q_i = shadows.original, shadows.train, "trained on (original)"
    q_R = shadows.original, shadows.heldout, "held out (original)"
    forgot, out, unknown = targets.forget, targets.heldout, np.full(targets.forget.shape, np.nan)
    result = {
        ("ruli", "privacy"): Question(ratio(targets.unlearned, q_u, q_h), forgot, out),
        ("ruli", "efficacy"): Question(unknown, forgot, out, "no retrained target models were given"),
        ("ruli", "trained"): Question(ratio(targets.original, q_i, q_R), targets.train, out),
        ("ruli", "remained"): Question(unknown, retain, out, "no audited sample was kept"),
        ("u_lira", "privacy"): Question(ratio(targets.unlearned, q_u, q_R, gaussian), forgot, out),
        ("population", "privacy"): Question(_pooled(targets, shadows, options), forgot, out),
    }
    answer = targets.retrained if options.test_model == "retrained" else targets.original
    if answer is not None:
        score = ratio(np.where(forgot, targets.unlearned, answer), q_u, q_R)
        result["ruli", "efficacy"] = Question(score, forgot, out)
    if retain.any():
        used = (retain | out).any(axis=0) & (remained.sum(axis=0) >= options.minimum)
        score = unknown.copy()
        over, under = ((phi[:, used], mask[:, used], name) for phi, mask, name in (q_r, q_h))
        score[:, used] = ratio(targets.unlearned[:, used], over, under)
        result["ruli", "remained"] = Question(score, retain & used, out & used)
    return result


def _pooled(targets: Population, shadows: Population, options: Options) -> np.ndarray:
    """Return the log-odds of having forgotten each sample, float64 [targets, samples], by one logistic regression on
    the phi of all samples and shadow models together."""
    phi = shadows.unlearned if options.population == "unlearned" else shadows.original
    rows = shadows.forget | shadows.heldout
    model = logistic.fit(phi[rows][:, None], shadows.forget[rows])
    return model.log_odds(targets.unlearned[..., None])
