"""RULI: privacy leakage and efficacy of unlearning by per-sample likelihood ratios (Naderloui et al. 2025)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field, PositiveFloat

from unlearning_audit.evaluation import logistic
from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.metrics import Group, Row, _game, _reference, or_nothing, or_reason, rates, splits, table
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity
from unlearning_audit.plugins.settings import FalsePositiveRates, Settings
from unlearning_audit.stats.readings import MembershipTest, readings, tprs

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

#: φ of shadow models [models, samples], a mask of the same shape of the values that form a distribution, and its name.
Distribution = tuple[np.ndarray, np.ndarray, str]


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

    Parameters
    ----------
    original, unlearned
        float64 [models, samples]: phi before and after unlearning.
    train, forget, heldout
        bool [models, samples].
    retrained
        float64 [models, samples]: phi of models trained anew without each model's forget set, needed of targets only.
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
        return self._changed(lambda array: array if array.dtype == bool else _reference.clip(array, probability))

    def _changed(self, change: Callable[[np.ndarray], np.ndarray]) -> "Population":
        """Return the population with ``change`` applied to every array."""
        arrays: dict[str, Any] = {name: None if array is None else change(array) for name, array in vars(self).items()}
        return Population(**arrays)


def check_populations(targets: Population, shadows: Population) -> None:
    """Raise ValueError if a population holds phi that is not finite, or if a target model is also a shadow model, which
    shows in equal phi of all samples. A model must not be its own reference."""
    for name, population in (("targets", targets), ("shadows", shadows)):
        for field, value in vars(population).items():
            if value is not None and not np.isfinite(value).all():
                raise ValueError(f"{name}.{field} holds NaN or infinite phi: these models cannot be scored")
    for name in ("original", "unlearned"):
        phi_targets, phi_shadows = getattr(targets, name), getattr(shadows, name)
        for number, phi in enumerate(phi_targets):
            if (phi_shadows == phi).all(axis=1).any() and np.ptp(phi) > 0:  # different models may share a constant φ
                raise ValueError(f"target {number} is also a shadow model ({name}): leave it out of its own reference")


#: The tests of RULI whose ROC curve is kept, and the rates of false alarms at which it is.
CURVES = ("privacy", "efficacy")
CURVE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return accuracy, AUC and TPR of RULI's tests (privacy, efficacy, trained, remained), of U-LiRA and of the
    population attack, on all target samples, then on vulnerable and on protected ones (field ``target``) if not all
    samples are of one kind.

    The efficacy test reads φ of held-out samples on retrained models, unless the option ``test_model`` is "original".
    If the method itself is retraining, its control, retrained independently, takes the place of retrained models. With
    a selection of samples, the accuracy on vulnerable samples that were retained follows (table 3), with role retain
    and target vulnerable. Where models do not allow the tests, such as without shadow models, imported ones get one row
    with the reason, and ValueError is raised for models that were trained here.
    """
    return or_reason(evaluation, lambda: _rows(evaluation, options), metric="privacy_auc", attack="ruli")


def _rows(evaluation: Evaluation, options: Options) -> list[Row]:
    """Return the rows of all tests on all target samples, and on each kind of them ("vulnerable", "protected") if the
    samples are of several kinds; then, if some samples are vulnerable, the mean accuracy of models on the vulnerable
    samples that each retains."""
    columns = _weighted_samples(evaluation)
    targets, shadows = populations(evaluation, columns)
    # Kind → which target samples are of it; "" stands for all of them.
    kinds = {"": np.ones(int(columns.sum()), bool)}
    if evaluation.selection is not None:
        kinds |= {kind: getattr(evaluation.selection, kind)[columns] for kind in ("vulnerable", "protected")}
    table = []
    for kind, of_kind in kinds.items():
        # If all samples are of one kind, its rows would repeat those of "".
        if of_kind.any() and (kind == "" or not of_kind.all()):
            lines = evaluate(targets.columns(of_kind), shadows.columns(of_kind), options, curve=CURVE)
            table += [replace(line, target=kind) for line in lines]  # the field of a row that names the kind of samples
    if "vulnerable" in kinds and kinds["vulnerable"].any():
        table += _accuracy_on_vulnerable(evaluation, np.flatnonzero(columns)[kinds["vulnerable"]])
    return table


#: Retraining leaves nothing that distinguishes forgotten from held-out samples, or unlearned from retrained models.
DECIDES = {
    name: DecisionRule(1, "auc", ideal=0.5, units="target models", lowest=0.0, highest=1.0)
    for name in ("privacy_auc", "efficacy_auc")
}


def effects(evaluation: Evaluation, options: Options) -> dict[str, Effect]:
    """Return "privacy_auc" and "efficacy_auc" → the AUC of RULI's test of membership, and of its test against
    retraining, for each target model that has positive and negative samples. Each target model is a unit of its own.

    Only samples of positive weight in the memberships are read, all if there are no weights. A test that lacks its
    models is left out. {} without shadow models, or if imported models do not allow the tests. Raises ValueError if
    models that were trained here do not allow them.
    """
    if evaluation.target.all() and not evaluation.imported:  # all models are targets, so there are no shadow models
        return {}
    columns = _weighted_samples(evaluation)
    return or_nothing(evaluation, lambda: aucs(*populations(evaluation, columns), options, np.flatnonzero(columns)))


def _weighted_samples(evaluation: Evaluation) -> np.ndarray:
    """Return which samples have a positive ``weight`` in the memberships, bool [samples]; all if there are no weights.
    These are the target samples of the protocol."""
    weight = evaluation.membership.weight
    return np.ones(len(evaluation.data.y), bool) if weight is None else weight > 0


def aucs(targets: Population, shadows: Population, options: Options, index: np.ndarray) -> dict[str, Effect]:
    """Return "privacy_auc" and "efficacy_auc" → the AUC of the test for each target model, as effects.

    An AUC above .5 means that forgotten samples look more familiar than never-seen ones, below .5 that they look less
    familiar. A likelihood ratio tells the two apart, but not which looks more familiar. So AUC is replaced by 1 − AUC
    where the mean φ of unlearned shadow models on forgotten samples is lower than the mean φ on never-seen ones: of the
    same models for "privacy_auc", of the shadow models before unlearning for "efficacy_auc". Targets without positive
    or without negative samples are left out, and so is a test that lacks its models.

    Parameters
    ----------
    targets, shadows
        φ and memberships on the same samples, whose numbers are ``index`` int64 [samples].
    """
    audited = (targets.forget | targets.heldout).any(axis=0)
    forgotten, heldout = shadows.unlearned[shadows.forget & audited], shadows.heldout & audited
    never_seen = {"privacy_auc": shadows.unlearned[heldout], "efficacy_auc": shadows.original[heldout]}
    found = {}
    for (attack, name), test in score_tests(targets, shadows, options).items():
        metric, usable = f"{name}_auc", test.positive.any(axis=1) & test.negative.any(axis=1)
        if attack == "ruli" and metric in DECIDES and not test.missing and usable.any():
            auc = _game.auc(test.score[usable], test.positive[usable], test.negative[usable])
            if forgotten.size and heldout.any() and forgotten.mean() < never_seen[metric].mean():
                auc = replace(auc.times(-1), value=1 - auc.value)  # 1 − AUC, whose influences have the opposite sign
            places = {"unit": np.flatnonzero(usable), "index": index[audited]}
            found[metric] = single(**vars(auc), **places, rule=DECIDES[metric])  # vars: value, influence and imagined
    return found


def populations(evaluation: Evaluation, columns: np.ndarray) -> tuple[Population, Population]:
    """Return φ and memberships of the targets, and of the shadow models, on the samples ``columns`` bool [samples].
    Raises ValueError without shadow models, and if models before and after unlearning do not match."""
    targets, shadows = evaluation.defender_and_adversary()
    return population(targets, columns), population(shadows, columns)


def population(groups: dict[str, Group | None], columns: np.ndarray) -> Population:
    """Return φ before and after unlearning, and of retrained models if there are any, with memberships, on the samples
    ``columns`` bool [samples].

    The memberships are those of the unlearned models, which always exist.

    Parameters
    ----------
    groups
        "original", "unlearned" and "retrained" → models, or None if there are no such models.
    """
    unlearned = groups["unlearned"]
    assert unlearned is not None
    arrays: dict[str, Any] = {name: None if models is None else models.phi(columns) for name, models in groups.items()}
    arrays |= {name: getattr(unlearned.membership, name)[:, columns] for name in ("train", "forget", "heldout")}
    return Population(**arrays)


def _accuracy_on_vulnerable(evaluation: Evaluation, vulnerable: np.ndarray) -> list[Row]:
    """Return one row, the accuracy of the unlearned target models on those ``vulnerable`` samples that they retain.
    ``vulnerable`` int64: the numbers of the vulnerable target samples."""
    member = evaluation.membership[evaluation.target]
    logits = evaluation.outputs(evaluation.unlearned_files).stacked(evaluation.target, vulnerable)
    right = rates.predicted(logits) == evaluation.data.y[vulnerable]
    accuracy = rates.rate(hit=right, rows=member.retain[:, vulnerable], **splits(member))
    return table({"accuracy": accuracy}, role="retain", target="vulnerable")


def evaluate(targets: Population, shadows: Population, options: Options, *, curve: tuple[float, ...] = ()) -> list[Row]:
    """Return rows of every test: the accuracy ½(TPR + TNR) where a likelihood ratio above 1 counts as positive, AUC,
    and TPR at each FPR of the options, as means over targets with intervals.

    For RULI's tests in `CURVES`, the TPR at each FPR of ``curve`` follows, as "…_roc" with its ``rate``. The samples
    are all that some target forgot or held out. Intervals cover the samples and, with two targets or more, the targets.
    The last rows say how much more RULI's attack finds than the population attack. Raises ValueError for models that
    cannot be compared, and for samples with too few shadow models.
    """
    lines = []
    for (attack, name), test in score_tests(targets, shadows, options).items():
        numbers = readings(test, fpr=options.fpr)
        lines += table({f"{name}_{metric}": number for metric, number in numbers.items()}, attack=attack)
        rates_of_curve = curve if attack == "ruli" and name in CURVES else ()
        for rate, tpr in tprs(test, fpr=rates_of_curve).items():
            lines += table({f"{name}_roc": tpr}, attack=attack, rate=rate)
    return lines + over_population(lines)


def over_population(rows: list[Row]) -> list[Row]:
    """Return rows of how much more RULI's attack finds than the population attack (section 6.2.2 of the paper).

    RULI's attack has distributions for each sample, the population attack one classifier for all samples.

    For accuracy the number is RULI's divided by that of the population attack, minus 1; for TPR at 1 % FPR it is the
    ratio. NaN, with the reason as note, where the population attack finds nothing or one of the two is NaN. There are
    no intervals, because both rest on the same models and samples.

    Parameters
    ----------
    rows
        The rows of both attacks; a number that one of them lacks is left out.
    """
    by_attack = {(row.attack, row.metric): row for row in rows}
    ratios = []
    for metric, subtracted in (("privacy_accuracy", 1.0), ("privacy_tpr_at_1pct_fpr", 0.0)):
        ruli, pooled = by_attack.get(("ruli", metric)), by_attack.get(("population", metric))
        if ruli is None or pooled is None:
            continue
        value, note = np.nan, "the population attack finds nothing, so there is no ratio"
        if np.isnan(ruli.value + pooled.value):
            note = ruli.note if np.isnan(ruli.value) else pooled.note
        elif pooled.value > 0:
            value, note = ruli.value / pooled.value - subtracted, "a ratio of two numbers, without an interval"
        ratios.append(Row(f"{metric}_over_population", value, n=ruli.n, note=note, attack="ruli"))
    return ratios


def score_tests(targets: Population, shadows: Population, options: Options) -> dict[tuple[str, str], MembershipTest]:
    """Return (attack, test) → the scores of the target models, with which samples are positives and which negatives:
    for all tests of RULI's table 1, for U-LiRA, and for the population attack, which is one attack for all samples.

    Only samples that some target forgot or held out are scored; they are the columns of the scores. The scores of RULI
    are log-ratios of the densities of two distributions, at phi of the target model. Q_u, Q_h and Q_r are the
    distributions of phi in unlearned shadow models that forgot, never saw and retained the sample. Q_i and Q_R are
    those in original shadow models that did and did not train on it. The tests are:

    * privacy: Q_u against Q_h, on the unlearned target;
    * efficacy: Q_u against Q_R, on the unlearned target for forgotten and on the retrained one for held-out samples;
    * trained: Q_i against Q_R, on the original target;
    * remained: Q_r against Q_h, on the unlearned target.

    U-LiRA is the privacy test with Gaussians of Q_u and Q_R, of one spread if RULI's have. A test that lacks its models
    has scores NaN and the reason. Raises ValueError for phi that is not finite, a target that is also a shadow model,
    and samples with too few shadow models in a distribution.
    """
    check_populations(targets, shadows)
    audited = (targets.forget | targets.heldout).any(axis=0)
    if not audited.any():
        raise ValueError("no audited sample is forgotten or held out by any target")
    targets, shadows = (side.columns(audited).clipped(options.clip) for side in (targets, shadows))
    retain, shadows_retain = (side.train & ~side.forget for side in (targets, shadows))

    def log_ratio(
        phi: np.ndarray, over: Distribution, under: Distribution, kind: _reference.Kind = options.density
    ) -> np.ndarray:
        """Return log p(phi | over) − log p(phi | under), float64 [targets, samples], of ``phi`` of target models. The
        ``options`` say how densities are made."""
        how: dict[str, Any] = {"kind": kind, "bandwidth": options.bandwidth, "minimum": options.minimum}
        log_p = [_reference.log_density(values, mask, phi, side=name, **how) for values, mask, name in (over, under)]
        return np.asarray(np.subtract(*log_p))  # that of ``over`` minus that of ``under``

    gaussian: _reference.Kind = "pooled" if options.density == "pooled" else "gaussian"
    q_u = shadows.unlearned, shadows.forget, "forgotten (unlearned)"
    q_h = shadows.unlearned, shadows.heldout, "held out (unlearned)"
    q_r = shadows.unlearned, shadows_retain, "kept (unlearned)"
    q_i = shadows.original, shadows.train, "trained on (original)"
    q_R = shadows.original, shadows.heldout, "held out (original)"
    forget, heldout, unknown = targets.forget, targets.heldout, np.full(targets.forget.shape, np.nan)
    # "efficacy" and "remained" are replaced below, if there are models or samples for them.
    tests = {
        ("ruli", "privacy"): MembershipTest(log_ratio(targets.unlearned, q_u, q_h), forget, heldout),
        ("ruli", "efficacy"): MembershipTest(unknown, forget, heldout, "no retrained target models were given"),
        ("ruli", "trained"): MembershipTest(log_ratio(targets.original, q_i, q_R), targets.train, heldout),
        ("ruli", "remained"): MembershipTest(unknown, retain, heldout, "no audited sample was kept"),
        ("u_lira", "privacy"): MembershipTest(log_ratio(targets.unlearned, q_u, q_R, gaussian), forget, heldout),
        ("population", "privacy"): MembershipTest(_population_log_odds(targets, shadows, options), forget, heldout),
    }
    phi_heldout = targets.retrained if options.test_model == "retrained" else targets.original
    if phi_heldout is not None:
        score = log_ratio(np.where(forget, targets.unlearned, phi_heldout), q_u, q_R)
        tests["ruli", "efficacy"] = MembershipTest(score, forget, heldout)
    if retain.any():
        # No protocol ensures that enough shadow models retain each sample; samples without them are left out.
        used = (retain | heldout).any(axis=0) & (shadows_retain.sum(axis=0) >= options.minimum)
        score = unknown.copy()
        over, under = ((phi[:, used], mask[:, used], name) for phi, mask, name in (q_r, q_h))
        score[:, used] = log_ratio(targets.unlearned[:, used], over, under)
        tests["ruli", "remained"] = MembershipTest(score, retain & used, heldout & used)
    return tests


def _population_log_odds(targets: Population, shadows: Population, options: Options) -> np.ndarray:
    """Return the log-odds that each target forgot each sample rather than never saw it, float64 [targets, samples], by
    one logistic regression on the phi of all samples and shadow models together. The regression learns from unlearned
    shadow models or, by the option ``population``, from shadow models before unlearning."""
    phi = shadows.unlearned if options.population == "unlearned" else shadows.original
    forgotten_or_heldout = shadows.forget | shadows.heldout
    # [:, None] and [..., None]: phi is the only feature.
    model = logistic.fit(phi[forgotten_or_heldout][:, None], shadows.forget[forgotten_or_heldout])
    return model.log_odds(targets.unlearned[..., None])
