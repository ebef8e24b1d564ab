"""Functions that metrics of language models share."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np

from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.published import Published
from unlearning_audit.metrics import Evaluation, Membership, Row, _pairs, crossed, groups, levels, or_none, row
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity

#: The loss of language models, compared with that of retrained ones: it is the logarithm of perplexity.
UTILITY = DecisionRule(1, "perplexity", scale="log", deciding=False)

#: The loss on the forget set, which is lower before unlearning than after retraining.
FORGOTTEN = replace(UTILITY, direction=-1, deciding=True)


def by_role(first: int, group: str) -> tuple[Column, ...]:
    """Declare a column of each role of samples, from the place ``first`` on, without intervals."""
    roles = enumerate(("forget", "heldout", "retain", "test"), first)
    return tuple(Column(place, role, role=role, group=group, interval=False) for place, role in roles)


def above_retraining(name: str, label: str, of: str = "", comparison: str = "", order: int = 0) -> Quantity:
    """Declare the difference of a number in the text from that of retrained models.

    ``label``: of the number itself; ``of``: how the explanation calls it, "" without one; ``comparison`` and ``order``:
    its name and its place among the numbers that methods are compared by, if it is one of these.
    """
    compared = Comparison(comparison, order, ideal=0.0, two_sided=True, role="forget", retrained=True)
    reading = f"{of} minus that of retrained models: 0 = as if retrained." * bool(of)
    return Quantity(
        name, f"{label} above retraining", ideal=0.0, reading=reading, comparisons=(compared,) * bool(comparison)
    )


def by_pair(evaluation: Evaluation, rows: Callable[[np.ndarray, Membership], list[Row]]) -> list[Row]:
    """Return the rows of all target models, then, if these are several swapped pairs, the rows of each pair, with its
    number in the field ``pair``.

    In a swapped pair, the models of one split forget the samples that those of the other never saw. ``rows`` computes
    the rows of some models from a mask of them, bool [target models], and their memberships.
    """
    target = evaluation.membership[evaluation.target]

    def of_blocks(blocks: Collection[int]) -> list[Row]:
        """Return the rows of the target models of some pairs."""
        models = np.isin(target.block, list(blocks))
        return rows(models, target[models])

    try:
        pairs = _pairs.groups(target)
    except ValueError:
        return of_blocks(set(target.block.tolist()))
    return _pairs.by_pair(pairs, lambda some: of_blocks({group.block for group in some}))


def units(target: Membership) -> dict[str, np.ndarray]:
    """Return unit and split of each target model; models of one block that keep the same samples are one unit."""
    keys = np.concatenate([target.block[:, None], np.packbits(target.retain, axis=1)], axis=1)
    return {"unit": np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1), "split": target.split}


def roles(test: np.ndarray, member: Membership | Published) -> dict[str, np.ndarray]:
    """Return role → bool [models, samples]; the role "test" is the same ``test`` part, bool [samples], for all
    models."""
    test = np.broadcast_to(test, member.forget.shape)
    return {"forget": member.forget, "heldout": member.heldout, "retain": member.retain, "test": test}


def mean(value: np.ndarray, rows: np.ndarray) -> crossed.PerModel:
    """Return the mean for each model of a quantity in [0, 1] over its ``rows``, bool [models, samples].

    ``value`` [models, samples] may be NaN elsewhere.
    """
    return crossed.per_model(value=np.where(rows, value, 0.0), weight=rows.astype(np.float64))


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


def compared_files(evaluation: Evaluation) -> list[str] | None:
    """Return the files with logits of the retrained models to compare with, or None if there are none.

    Retraining itself is compared with its control. Returns None too if retraining failed or diverged, because that is
    not a fault of this method.
    """
    return evaluation.compared_files if or_none(evaluation.outputs, evaluation.compared_files) else None


#: Value of each sample, float64 [target models, samples], by metric and ``rule``.
Shares = Mapping[tuple[str, str], np.ndarray]


def of_tokens(evaluation: Evaluation, read: Callable[[np.ndarray], Shares]) -> list[Row]:
    """Return rows of the means of numbers that ``read`` computes from the tokens of forgotten and held-out samples.

    ``read``: the signal "tokens" [models, samples, tokens, 4] → (metric, rule) → values [models, samples] in [0, 1]. If
    there are retrained models, rows of the difference from them follow.
    """
    samples, files = forgotten_or_heldout(evaluation), compared_files(evaluation)
    audited = read(evaluation.signal("tokens", evaluation.unlearned_files, evaluation.target, samples))
    retrained = None if files is None else read(evaluation.signal("tokens", files, evaluation.target, samples))
    return shares(evaluation, audited, retrained, only=("forget", "heldout"), samples=samples)


def padding(x: np.ndarray) -> np.ndarray:
    """Return which positions in rows of tokens int [..., length] come after the last token: bool, of the shape of
    ``x``.

    Padding is −1. So is a token 0 that is read and not scored, which some vocabularies use for text.
    """
    return np.logical_and.accumulate((x == -1)[..., ::-1], axis=-1)[..., ::-1]


def forgotten_or_heldout(evaluation: Evaluation) -> np.ndarray:
    """Return the samples that some target model forgot or never saw, int64."""
    return np.flatnonzero((evaluation.membership.forget | evaluation.membership.heldout)[evaluation.target].any(0))


def forgotten_tokens(evaluation: Evaluation) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples that some target model forgot, int64 [rows], and the signal "tokens" of all target models on
    them, float64 [target models, rows, tokens, 4]."""
    samples = np.flatnonzero(evaluation.membership.forget[evaluation.target].any(0))
    return samples, evaluation.signal("tokens", evaluation.unlearned_files, evaluation.target, samples)


def shares(
    evaluation: Evaluation, audited: Shares, retrained: Shares | None = None, *, gaps: Mapping[str, str] | None = None,
    only: Collection[str] = ("forget", "heldout", "retain", "test"), samples: np.ndarray | None = None,
) -> list[Row]:  # fmt: skip
    """Return rows of the means over models and samples of numbers in [0, 1], for every role (field ``role``) and every
    pair of splits.

    With ``retrained``, rows of the differences from the means of retrained models follow. ``audited`` and ``retrained``
    are NaN where a model was not queried. ``gaps``: metric → name of its difference, by default "…_gap"; ``only``: the
    roles; ``samples``: which samples the values are of, int64 (None: all). A role has no rows if some model has no
    sample of it.
    """

    def of_models(models: np.ndarray, member: Membership) -> list[Row]:
        """Return the rows of some ``models`` bool [target models]."""
        over, table = groups(member), []
        for role, mask in roles(evaluation.data.part == 1, member).items():
            for (name, rule), value in audited.items() if role in only else ():
                asked = (mask if samples is None else mask[:, samples]) & ~np.isnan(value[models])
                if not asked.any(1).all():
                    continue
                place = {"role": role, "rule": rule}
                n, share = int(asked.any(0).sum()), mean(value[models], asked)
                table.append(row(metric=name, **place, estimate=levels.of(share, **over, n=n, bounds=(0, 1))))
                gap = f"{name}_gap" if gaps is None else gaps.get(name)
                if retrained is not None and gap:
                    apart = crossed.difference(share, mean(retrained[name, rule][models], asked))
                    table.append(row(metric=gap, **place, estimate=levels.of(apart, **over, n=n, bounds=(-1, 1))))
        return table

    return by_pair(evaluation, of_models)


def of_forgotten(
    evaluation: Evaluation, decides: Mapping[str, DecisionRule], value: np.ndarray, samples: np.ndarray | None = None
) -> dict[str, Effect]:
    """Return the mean of ``value`` in [0, 1], float64 [target models, samples], over each target model's forgotten
    samples; NaN is left out.

    ``decides``: the name of the number → how it decides; ``samples``: which samples the values are of, int64 (None:
    all). {} where a model has no such sample.
    """
    ((name, rule),), target = decides.items(), evaluation.membership[evaluation.target]
    samples = np.arange(value.shape[1]) if samples is None else samples
    rows = target.forget[:, samples] & ~np.isnan(value)
    if not rows.any(axis=1).all():
        return {}
    columns = np.flatnonzero(rows.any(axis=0))
    part = mean(value[:, columns], rows[:, columns])
    return {name: single(**vars(part), **units(target), index=samples[columns], rule=rule)}


def utilities(evaluation: Evaluation, forgotten: bool = False) -> dict[str, Effect]:
    """Return the mean negative log-likelihood per token of each target model on retained and test samples, as
    effects to utility.

    Held-out samples replace an empty test part. With ``forgotten``, forgotten samples are added. {} for models that are
    not language models. The latent values are log-odds of a token, because a loss cannot fall below 0 and log-odds can.
    """
    logits = evaluation.unlearned[evaluation.target]
    if logits.shape[-1] != 2:
        return {}
    value, target = nll(logits), evaluation.membership[evaluation.target]
    losses, test = {}, evaluation.data.part == 1
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
            losses[f"nll_{role}"] = single(**vars(part), **units(target), index=columns, rule=rule, latent=latent)
    return losses
