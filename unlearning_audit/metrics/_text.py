"""Functions that metrics of language models share."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np

from unlearning_audit.evaluation.effects import DecisionRule, Effect, single
from unlearning_audit.evaluation.published import Published
from unlearning_audit.metrics import Evaluation, Membership, Row, _pairs, crossed, levels, or_none, row, splits
from unlearning_audit.plugins.declarations import Column, Comparison, Quantity

#: The loss of language models, compared with that of retrained ones: it is the logarithm of perplexity.
UTILITY = DecisionRule(1, "perplexity", scale="log", deciding=False)

#: The loss on the forget set, which is lower before unlearning than after retraining.
FORGOTTEN = replace(UTILITY, direction=-1, deciding=True)


def by_role(start: int, group: str) -> tuple[Column, ...]:
    """Return declarations of a table's column for each role of samples, without intervals.

    Parameters
    ----------
    start
        The place of the first of these columns in the table.
    group
        The head above all of these columns.
    """
    roles = enumerate(("forget", "heldout", "retain", "test"), start)
    return tuple(Column(place, role, role=role, group=group, interval=False) for place, role in roles)


def above_retraining(name: str, label: str, of: str = "", comparison: str = "", order: int = 0) -> Quantity:
    """Return the declaration of ``name``, the difference between a number and that of retrained models. It has no value
    without retrained models.

    Parameters
    ----------
    label
        The label of the number itself.
    of
        What the explanation calls the number; "": there is no explanation.
    comparison, order
        The name of the difference, and its place among the numbers by which methods are compared; "": methods are not
        compared by it.
    """
    compared = Comparison(comparison, order, ideal=0.0, two_sided=True, role="forget", retrained=True)
    reading = f"{of} minus that of retrained models: 0 = as if retrained." if of else ""
    comparisons = (compared,) if comparison else ()
    return Quantity(name, f"{label} above retraining", ideal=0.0, reading=reading, comparisons=comparisons)


def rows_by_pair(evaluation: Evaluation, rows: Callable[[np.ndarray, Membership], list[Row]]) -> list[Row]:
    """Return the rows of all target models, then, if these are several swapped pairs, the rows of each pair, with its
    number in the field ``pair``.

    In a swapped pair, the models of one split forget the samples that those of the other never saw. ``rows`` computes
    the rows of some models from a mask of them, bool [target models], and their memberships.
    """
    target = evaluation.membership[evaluation.target]

    def of_splits(splits: list[_pairs.SplitModels]) -> list[Row]:
        """Return what ``rows`` computes for all target models of the pairs to which some ``splits`` belong. ``target``
        are the memberships of all target models."""
        models = np.isin(target.block, [split.block for split in splits])
        return rows(models, target[models])

    try:
        pair_splits = _pairs.swapped_splits(target)
    except ValueError:  # the models are not swapped pairs
        return rows(np.ones(len(target.block), bool), target)
    return _pairs.by_pair(pair_splits, of_splits)


def units(target: Membership) -> dict[str, np.ndarray]:
    """Return "unit" and "split" → the number of each target model's unit and of its split, int64 [models]. Models of
    different units share nothing but samples; models of one block that keep the same samples are one unit."""
    # A row for each model: its block and, as bits, the samples that it keeps. Models with equal rows get one number.
    keys = np.concatenate([target.block[:, None], np.packbits(target.retain, axis=1)], axis=1)
    _, number = np.unique(keys, axis=0, return_inverse=True)
    return {"unit": number.reshape(-1), "split": target.split}


def roles(test: np.ndarray, member: Membership | Published) -> dict[str, np.ndarray]:
    """Return role → which samples have it for each model, bool [models, samples]: "forget", "heldout", "retain" of the
    memberships ``member``, and "test", the same ``test`` part, bool [samples], for all models."""
    test = np.broadcast_to(test, member.forget.shape)
    return {"forget": member.forget, "heldout": member.heldout, "retain": member.retain, "test": test}


def mean(value: np.ndarray, rows: np.ndarray) -> crossed.PerModel:
    """Return the mean of ``value`` over the samples ``rows`` of each model, with the influence of each sample on it.

    Parameters
    ----------
    value
        bool, or float64 in [0, 1], [models, samples]: NaN is allowed outside of ``rows``.
    rows
        bool [models, samples].
    """
    return crossed.per_model(value=np.where(rows, value, 0.0), weight=rows.astype(np.float64))


def nll(logits: np.ndarray) -> np.ndarray:
    """Return the mean negative log-likelihood per token of each passage in nats, float64 [models, samples].

    ``logits`` [models, samples, 2]: of a language model, they are (φ, 0), where φ is the log-odds of the mean
    likelihood of a token, so that sigmoid(φ) = exp(−nll) and nll = log(1 + exp(−φ)). Raises ValueError for models with
    more than two classes, which are not language models.
    """
    if (n := logits.shape[-1]) != 2:
        raise ValueError(f"models have {n} classes; perplexity is that of language models, whose logits are (φ, 0)")
    phi, zero = (logits[..., column].astype(np.float64) for column in (0, 1))
    return np.logaddexp(0.0, zero - phi)


def compared_files(evaluation: Evaluation) -> list[str] | None:
    """Return the files with logits of the retrained models to compare with, or None if there are none.

    Retraining itself is compared with its control. Returns None too if retraining failed, or diverged (a logit is NaN
    or infinite), because that is not a fault of this method.
    """
    outputs = or_none(evaluation.outputs, evaluation.compared_files)  # opening the files shows whether it failed
    return evaluation.compared_files if outputs else None


#: (metric, field ``rule`` of its rows, such as "8 answers" or "") → the value of each sample, from 0 to 1, float64
#: [target models, samples].
Shares = Mapping[tuple[str, str], np.ndarray]


def rows_of_tokens(evaluation: Evaluation, compute: Callable[[np.ndarray], Shares]) -> list[Row]:
    """Return rows of the means of numbers in [0, 1] that ``compute`` returns for the tokens of forgotten and held-out
    samples (field ``role``), over all target models, then over each swapped pair (field ``pair``) if there are several.
    If there are retrained models, each row is followed by one of the mean minus theirs, with the name "…_gap".

    ``compute`` takes the signal "tokens" of some models, float64 [models, samples, tokens, 4]: log p, its mean and
    standard deviation under the model, and the rank of each token. Raises ArtifactError if no job computed this signal.
    """
    samples, files = forgotten_or_heldout(evaluation), compared_files(evaluation)
    audited = compute(evaluation.signal("tokens", evaluation.unlearned_files, evaluation.target, samples))
    retrained = None if files is None else compute(evaluation.signal("tokens", files, evaluation.target, samples))
    return rows_of_shares(evaluation, audited, retrained, only=("forget", "heldout"), samples=samples)


def padding(x: np.ndarray) -> np.ndarray:
    """Return which positions in rows of tokens ``x`` int [..., length] come after the last token: bool, of their shape.

    Padding is −1. A token that is read and not scored is ~token, so token 0 is then −1, too. Some vocabularies use
    token 0 for text, so only the run of −1 at the end of a row is padding.
    """
    return np.logical_and.accumulate((x == -1)[..., ::-1], axis=-1)[..., ::-1]


def forgotten_or_heldout(evaluation: Evaluation) -> np.ndarray:
    """Return the samples that some target model forgot or never saw, int64."""
    return np.flatnonzero((evaluation.membership.forget | evaluation.membership.heldout)[evaluation.target].any(0))


def forgotten_tokens(evaluation: Evaluation) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples that some target model forgot, int64 [rows], and the signal "tokens" of all target models on
    them, float64 [target models, rows, tokens, 4]: log p, its mean and standard deviation under the model, and the rank
    of each token. Raises ArtifactError if no job computed this signal."""
    samples = np.flatnonzero(evaluation.membership.forget[evaluation.target].any(0))
    return samples, evaluation.signal("tokens", evaluation.unlearned_files, evaluation.target, samples)


def rows_of_shares(
    evaluation: Evaluation,
    audited: Shares,
    retrained: Shares | None = None,
    *,
    gaps: Mapping[str, str] | None = None,
    only: Collection[str] = ("forget", "heldout", "retain", "test"),
    samples: np.ndarray | None = None,
) -> list[Row]:
    """Return rows of the means over models and samples of numbers in [0, 1], for every role (field ``role``); over all
    target models, then over each swapped pair (field ``pair``) if there are several.

    A role has no rows if some model was queried on no sample of it.

    Parameters
    ----------
    audited
        (metric, field ``rule``) → values of the target models, float64 [target models, samples], NaN where a model was
        not queried.
    retrained
        (metric, field ``rule``) → values of retrained models. If they are given, the row of each mean is followed by a
        row of this mean minus that of retrained models.
    gaps
        Metric → name of its difference; a metric that is not among them has no difference. None: all metrics have one,
        with the name "…_gap".
    only
        The roles that have rows.
    samples
        int64: the numbers of the samples that the values are of; None: all samples.
    """

    def of_models(models: np.ndarray, member: Membership) -> list[Row]:
        """Return the rows of some ``models`` bool [target models], whose memberships are ``member``.

        The values, names of differences, roles and samples are those that `rows_of_shares` was given: ``audited``,
        ``retrained``, ``gaps``, ``only`` and ``samples``.
        """
        places, table = splits(member), []
        masks = {role: mask for role, mask in roles(evaluation.data.part == 1, member).items() if role in only}
        for role, mask in masks.items():
            for (name, rule), value in audited.items():
                queried = (mask if samples is None else mask[:, samples]) & ~np.isnan(value[models])
                if not queried.any(1).all():
                    continue
                fields = {"role": role, "rule": rule}
                n, share = int(queried.any(0).sum()), mean(value[models], queried)
                table.append(row(metric=name, **fields, estimate=levels.mean(share, **places, n=n, bounds=(0, 1))))
                gap = f"{name}_gap" if gaps is None else gaps.get(name)
                if retrained is not None and gap:
                    distance = crossed.difference(share, mean(retrained[name, rule][models], queried))
                    estimate = levels.mean(distance, **places, n=n, bounds=(-1, 1))
                    table.append(row(metric=gap, **fields, estimate=estimate))
        return table

    return rows_by_pair(evaluation, of_models)


def effect_on_forgotten(
    evaluation: Evaluation, decides: Mapping[str, DecisionRule], value: np.ndarray, samples: np.ndarray | None = None
) -> dict[str, Effect]:
    """Return the name in ``decides`` → the mean of ``value`` over each target model's forgotten samples, as an effect;
    {} if a model forgot no sample that has a value.

    Parameters
    ----------
    decides
        The name of the number → how it decides.
    value
        float64 [target models, samples] in [0, 1]; NaN: no value.
    samples
        int64: the numbers of the samples that the values are of; None: all samples.
    """
    target = evaluation.membership[evaluation.target]
    samples = np.arange(value.shape[1]) if samples is None else samples
    rows = target.forget[:, samples] & ~np.isnan(value)
    if not rows.any(axis=1).all():
        return {}
    columns = np.flatnonzero(rows.any(axis=0))
    places = units(target) | {"index": samples[columns]}
    means = vars(mean(value[:, columns], rows[:, columns]))
    return {name: single(**means, **places, rule=rule) for name, rule in decides.items()}


def utilities(evaluation: Evaluation, forgotten: bool = False) -> dict[str, Effect]:
    """Return "nll_retain" and "nll_test" → the mean negative log-likelihood per token of each target model on retained
    and on test samples. Verdicts read them as utility.

    "nll_heldout" replaces "nll_test" where the test part is empty. With ``forgotten``, "nll_forget" follows. A role of
    which some model has fewer than two samples is left out. {} for models that are not language models. The field
    ``latent`` is the mean of −φ, the log-odds against a token: a loss cannot fall below 0, and log-odds have no bound.
    """
    logits = evaluation.unlearned[evaluation.target]
    if logits.shape[-1] != 2:
        return {}
    target, loss, log_odds = evaluation.membership[evaluation.target], nll(logits), logits[..., 1] - logits[..., 0]
    of_role = roles(evaluation.data.part == 1, target)
    unseen = "test" if of_role["test"].any() else "heldout"  # a destroyed model has a high loss on what no model saw
    names, losses = ("retain", unseen, "forget") if forgotten else ("retain", unseen), {}
    for role in names:
        rows = of_role[role]
        if (rows.sum(axis=1) > 1).all():
            columns = np.flatnonzero(rows.any(axis=0))
            means = vars(levels.per_model(value=loss[:, columns], weight=rows[:, columns] * 1.0))
            latent = [of_model[mask].mean(dtype=np.float64) for of_model, mask in zip(log_odds, rows, strict=True)]
            places = units(target) | {"index": columns}
            rule = FORGOTTEN if role == "forget" else UTILITY
            losses[f"nll_{role}"] = single(**means, **places, rule=rule, latent=np.array(latent))
    return losses
