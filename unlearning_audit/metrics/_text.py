"""Functions that metrics of language models share."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np

from unlearning_audit.evaluation.arrays import Membership
from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.evaluation import Evaluation
from unlearning_audit.evaluation.published import Published
from unlearning_audit.evaluation.rows import Row
from unlearning_audit.metrics import _pairs, _units, row
from unlearning_audit.stats import crossed, levels
from unlearning_audit.store.files import NoAnswerError

#: The loss of language models, compared with that of retrained ones: it is the logarithm of perplexity.
UTILITY = DecisionRule(1, "perplexity", scale="log", deciding=False)

#: The loss on the forget set, which is lower before unlearning than after retraining.
FORGOTTEN = replace(UTILITY, direction=-1, deciding=True)


def by_pair(case: Evaluation, rows: Callable[[np.ndarray], list[Row]]) -> list[Row]:
    """Return the rows of all target models, then, if these are several swapped pairs, the rows of each pair, with its
    number in the field ``pair``.

    In a swapped pair, the models of one split forget the samples that those of the other never saw. ``rows`` computes
    rows from ``models`` bool [models].
    """
    member = case.membership
    try:
        groups = _pairs.groups(member)
    except ValueError:
        return rows(case.target)
    return _pairs.by_pair(
        groups, lambda some: rows(case.target & np.isin(member.block, [group.block for group in some]))
    )


def roles(test: np.ndarray, member: Membership | Published) -> dict[str, np.ndarray]:
    """Return role → bool [models, samples]; the role "test" is the same ``test`` part, bool [samples], for all
    models."""
    test = np.broadcast_to(test, member.forget.shape)
    return {"forget": member.forget, "heldout": member.heldout, "retain": member.retain, "test": test}


def weighted(value: np.ndarray, weight: np.ndarray) -> crossed.PerModel:
    """Return the weighted mean for each model of a quantity in [0, 1]; both [models, samples].

    ``value`` may be NaN where it is unknown; the weight must be 0 there.
    """
    return crossed.per_model(value=np.where(weight > 0, value, 0.0), weight=weight)


def nll(logits: np.ndarray) -> np.ndarray:
    """Return the mean negative log-likelihood per token of each passage in nats, float64 [models, samples].

    ``logits`` [models, samples, 2]: of a language model, they are (φ, 0), where φ is the log-odds of the mean
    likelihood of a token, so that sigmoid(φ) = exp(−nll) and nll = log(1 + exp(−φ)). Raises ValueError for models with
    more than two classes, which are not language models.
    """
    if logits.shape[-1] != 2:
        raise ValueError(
            f"models have {logits.shape[-1]} classes; perplexity is that of language models, whose logits are (φ, 0)"
        )
    two = logits.astype(np.float64)
    return np.logaddexp(0.0, two[..., 1] - two[..., 0])


def compared_files(case: Evaluation) -> list[str] | None:
    """Return the files with logits of the retrained models to compare with, or None if there are none.

    Retraining itself is compared with its control. Returns None too if retraining failed or diverged, because that is
    not a fault of this method.
    """
    try:
        if case.compared is None:
            return None
    except NoAnswerError:
        return None
    retraining = case.unlearned_files == case.retrained_files
    return case.control_files if retraining else case.retrained_files


#: Value of each sample, float64 [target models, samples], by metric and ``rule``.
Shares = Mapping[tuple[str, str], np.ndarray]


def of_tokens(case: Evaluation, read: Callable[[np.ndarray], Shares]) -> list[Row]:
    """Return rows of the means of numbers that ``read`` computes from the tokens of forgotten and held-out samples.

    ``read``: the signal "tokens" [models, samples, tokens, 4] → (metric, rule) → values [models, samples] in [0, 1]. If
    there are retrained models, rows of the difference from them follow.
    """
    samples, files = forgotten_or_heldout(case), compared_files(case)
    audited = read(case.signal("tokens", case.unlearned_files, case.target, samples))
    retrained = None if files is None else read(case.signal("tokens", files, case.target, samples))
    return shares(case, audited, retrained, only=("forget", "heldout"), samples=samples)


def padding(x: np.ndarray) -> np.ndarray:
    """Return which positions in rows of tokens int [..., length] come after the last token: bool, of the shape of
    ``x``.

    Padding is −1. So is a token 0 that is read and not scored, which some vocabularies use for text.
    """
    return np.logical_and.accumulate((x == -1)[..., ::-1], axis=-1)[..., ::-1]


def forgotten_or_heldout(case: Evaluation) -> np.ndarray:
    """Return the samples that some target model forgot or never saw, int64."""
    return np.flatnonzero((case.membership.forget | case.membership.heldout)[case.target].any(0))


def shares(
    case: Evaluation, audited: Shares, retrained: Shares | None = None, *, gaps: Mapping[str, str] | None = None,
    only: Collection[str] = ("forget", "heldout", "retain", "test"), samples: np.ndarray | None = None,
) -> list[Row]:  # fmt: skip
    """Return rows of the means over models and samples of numbers in [0, 1], for every role (field ``role``) and every
    pair of splits.

    With ``retrained``, rows of the differences from the means of retrained models follow. ``audited`` and ``retrained``
    are NaN where a model was not queried. ``gaps``: metric → name of its difference, by default "…_gap"; ``only``: the
    roles; ``samples``: which samples the values are of, int64 (None: all). A role has no rows if some model has no
    sample of it.
    """
    member, target = case.membership[case.target], np.flatnonzero(case.target)

    def of_models(models: np.ndarray) -> list[Row]:
        """Return the rows of some ``models`` bool [models]."""
        subset = models[target]
        groups = {"split": member.split[subset], "block": member.block[subset]}
        table = []
        for role, mask in roles(case.data.part == 1, member).items():
            for (name, rule), value in audited.items() if role in only else ():
                asked = (mask if samples is None else mask[:, samples]) & ~np.isnan(value)
                weight = asked[subset].astype(np.float64)
                if not weight.any(1).all():
                    continue
                place = {"role": role, "rule": rule}
                n, share = int(weight.any(0).sum()), weighted(value[subset], weight)
                table.append(row(metric=name, **place, estimate=levels.of(share, **groups, n=n, bounds=(0, 1))))
                gap = f"{name}_gap" if gaps is None else gaps.get(name)
                if retrained is not None and gap:
                    apart = crossed.difference(share, weighted(retrained[name, rule][subset], weight))
                    table.append(row(metric=gap, **place, estimate=levels.of(apart, **groups, n=n, bounds=(-1, 1))))
        return table

    return by_pair(case, of_models)


def of_forgotten(case: Evaluation, name: str, value: np.ndarray, rule: DecisionRule) -> dict[str, Effect]:
    """Return the mean of ``value`` in [0, 1], float64 [target models, samples], over each target model's forgotten
    samples; NaN is left out.

    {} where a model has no such sample.
    """
    target = case.membership[case.target]
    weight = (target.forget & ~np.isnan(value)).astype(np.float64)
    columns = np.flatnonzero(weight.any(axis=0))
    if not weight.any(axis=1).all():
        return {}
    part = weighted(value[:, columns], weight[:, columns])
    return {name: single(**vars(part), **_units.of(target), index=columns, rule=rule)}


def utilities(case: Evaluation, places: dict[str, np.ndarray], forgotten: bool = False) -> dict[str, Effect]:
    """Return the mean negative log-likelihood per token of each target model on retained and test samples, as
    effects to utility.

    Held-out samples replace an empty test part. With ``forgotten``, forgotten samples are added. ``places``: units and
    splits of target models. {} for models that are not language models. The latent values are log-odds of a token,
    because a loss cannot fall below 0 and log-odds can.
    """
    logits = case.unlearned[case.target]
    if logits.shape[-1] != 2:
        return {}
    value, target = nll(logits), case.membership[case.target]
    losses, test = {}, case.data.part == 1
    # A destroyed model has a high loss on samples that no model saw.
    unseen = {"test": np.broadcast_to(test, value.shape)} if test.any() else {"heldout": target.heldout}
    forget = {"forget": target.forget} if forgotten else {}
    for role, rows in {"retain": target.retain, **unseen, **forget}.items():
        columns = np.flatnonzero(rows.any(axis=0))
        if (rows.sum(axis=1) > 1).all():
            part = levels.per_model(value=value[:, columns], weight=rows[:, columns] * 1.0)
            log_odds = (logits[..., 1] - logits[..., 0]).astype(np.float64)
            latent = np.array([of_model[of].mean() for of_model, of in zip(log_odds, rows, strict=True)])
            rule = FORGOTTEN if role == "forget" else UTILITY
            losses[f"nll_{role}"] = single(**vars(part), **places, index=columns, rule=rule, latent=latent)
    return losses
