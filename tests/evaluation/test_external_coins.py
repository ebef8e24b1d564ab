"""Logits from elsewhere of a single model: it is audited by the coins that chose its canaries."""

import re

import numpy as np
import pytest
from scipy.stats import binom
from unlearning_audit import stats
from unlearning_audit.evaluation import records as lists
from unlearning_audit.evaluation.rows import Failure

from external_cases import CLASSES, answers, number, planned, run, save
from row_places import about


def coins(folder, *, pairs=60, models=1, trace=2.0, seed=0):
    """Nothing but target/: canaries, each pair with a coin for every model, and what models say of them."""
    rng = np.random.default_rng(seed)
    y, heads = rng.integers(CLASSES, size=2 * pairs), rng.integers(2, size=(models, pairs))
    forget = np.stack([heads == 0, heads == 1], axis=-1).reshape(models, -1)
    logits = answers(rng, y, forget, forget, memory=0, trace=trace)
    pair = np.repeat(np.arange(pairs), 2)
    save(folder, logits=logits, labels=y, forget=forget, heldout=~forget, pair=pair)
    return logits, y, forget


def test_a_single_model_is_audited_by_its_coins(workdir):
    logits, y, forget = coins(workdir / "logits" / "target")
    (rows,) = run(planned()).values()
    phi = stats.phi(logits=logits, y=y)[0].reshape(-1, 2)
    right = int((phi[:, 0] > phi[:, 1])[forget[0, ::2]].sum() + (phi[:, 1] > phi[:, 0])[forget[0, 1::2]].sum())
    for setting in ("", "model=0"):
        assert number(rows, "right_guesses", "phi", setting) == right / 60
        assert number(rows, "one_run_p", "phi", setting) == pytest.approx(binom.sf(right - 1, 60, 0.5))


def test_a_model_without_a_trace_is_not_told_by_its_coins(workdir):
    coins(workdir / "logits" / "target", models=5, pairs=400, trace=0.0)
    (rows,) = run(planned()).values()
    (share,) = [r for r in rows if (r.metric, r.attack, about(r)) == ("right_guesses", "phi", "")]
    assert share.n == 2000
    assert share.ci_low <= 0.5 <= share.ci_high


def test_a_pair_that_no_coin_decided_is_named(workdir):
    coins(workdir / "logits" / "target")
    np.save(workdir / "logits" / "target" / "pair.npy", np.roll(np.repeat(np.arange(60), 2), 1))
    (failure,) = [row for row in run(planned())["mine"] if isinstance(row, Failure)]
    assert re.search(r"target/pair\.npy: pair has pair \d+, of which model 0 forgot \d samples in pl", failure.sentence)


def fully_forgotten(seed, *, listed, pairs=100, others=1500):
    """One model that keeps no trace of its canaries, which all models know better than other unseen samples; its
    records, and whether its sides are a fair draw. ``listed``: heldout.npy holds all that was never seen."""
    rng = np.random.default_rng(seed)
    samples = 2 * pairs + 2 * others
    pair = np.concatenate([np.repeat(np.arange(pairs), 2), np.full(2 * others, -1)])
    heads = rng.integers(2, size=pairs)
    forget = np.zeros((1, samples), bool)
    forget[0, : 2 * pairs] = np.stack([heads == 0, heads == 1], axis=-1).ravel()
    train = forget | (np.arange(samples) >= 2 * pairs + others)
    y = rng.integers(CLASSES, size=samples)
    logits = answers(rng, y, pair[None] >= 0, train & ~forget, memory=3, trace=3)
    arrays = {"logits": logits, "labels": y, "train": train, "forget": forget, "pair": pair}
    save("logits/target", **arrays, **({"heldout": ~train} if listed else {}))
    ((rows, (case,)),) = [(rows, planned().cases) for rows in run(planned()).values()]
    return rows, [line for line in lists.read(case.records) if line["recognised"]]


@pytest.mark.parametrize("listed", [True, False], ids=["all_unseen", "inferred"])
def test_canaries_are_held_against_canaries_only(workdir, listed):
    """Unseen samples that no coin chose differ from canaries by themselves."""
    rows, recognised = fully_forgotten(0, listed=listed)
    assert recognised == []
    if not listed:
        assert number(rows, "auc", "phi") == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("models", [1, 2, 8])
def test_without_heldout_the_partner_of_a_canary_is_held_out(workdir, models):
    """Of many models some other one saw each partner; of two none saw half of them."""
    _, _, forget = coins(workdir / "logits" / "target", models=models)
    (workdir / "logits" / "target" / "heldout.npy").unlink()
    np.save(workdir / "logits" / "target" / "train.npy", forget)
    (rows,) = run(planned()).values()
    assert number(rows, "right_guesses", "phi", "model=0") > 0.5
