"""Logits from elsewhere of a single model: it is audited by the coins that chose its canaries."""

import numpy as np
import pytest
from scipy.stats import binom
from unlearning_audit import stats
from unlearning_audit.evaluation import records as lists

from external_cases import CLASSES, answers, number, only, planned, run, save
from row_places import about


def coins(*, pairs=60, models=1, trace=2.0, others=0, memory=0, heldout=True, seed=0):
    """Nothing but target/: canaries, each pair with a coin for every model, and what models say of them; logits, labels
    and forget of the canaries.

    ``others``: so many more samples that nobody saw, and as many that are kept; models know canaries better than these
    by ``memory``. ``heldout``: whether a file says what was held out, all that was never seen.
    """
    rng = np.random.default_rng(seed)
    pair = np.concatenate([np.repeat(np.arange(pairs), 2), np.full(2 * others, -1)])
    heads = rng.integers(2, size=(models, pairs))
    forget = np.zeros((models, len(pair)), bool)
    forget[:, : 2 * pairs] = np.stack([heads == 0, heads == 1], axis=-1).reshape(models, -1)
    train = forget | (np.arange(len(pair)) >= 2 * pairs + others)
    y = rng.integers(CLASSES, size=len(pair))
    better, traced = (np.tile(pair >= 0, (models, 1)), train & ~forget) if memory else (forget, forget)
    logits = answers(rng, y, better, traced, memory=memory, trace=memory or trace)
    masks = {"train": train, "forget": forget, "pair": pair} | ({"heldout": ~train} if heldout else {})
    save("logits/target", logits=logits, labels=y, **masks)
    return logits, y, forget


def test_a_single_model_is_audited_by_its_coins(workdir):
    logits, y, forget = coins()
    (rows,) = run(only(planned(), "one_run")).values()
    phi = stats.phi(logits=logits, y=y)[0].reshape(-1, 2)
    right = int(((phi[:, 0] > phi[:, 1]) == forget[0, ::2]).sum())
    for setting in ("", "model=0"):
        assert number(rows, "right_guesses", "phi", setting) == right / 60
        assert number(rows, "one_run_p", "phi", setting) == pytest.approx(binom.sf(right - 1, 60, 0.5))


def test_a_model_without_a_trace_is_not_told_by_its_coins(workdir):
    coins(models=5, pairs=400, trace=0.0)
    (rows,) = run(only(planned(), "one_run")).values()
    (share,) = [row for row in rows if (row.metric, row.attack, about(row)) == ("right_guesses", "phi", "")]
    assert share.n == 2000
    assert share.ci_low <= 0.5 <= share.ci_high


@pytest.mark.parametrize("heldout", [True, False], ids=["all_unseen", "inferred"])
def test_canaries_are_held_against_canaries_only(workdir, heldout):
    """Unseen samples that no coin chose differ from canaries by themselves; the model kept no trace of its canaries."""
    coins(pairs=100, others=1500, memory=3, heldout=heldout)
    whole = planned()
    (rows,) = run(whole).values()
    assert not [line for line in lists.read(whole.cases[0].records) if line["recognised"]]
    assert heldout or number(rows, "auc", "phi") == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("models", [1, 2, 8])
def test_without_heldout_the_partner_of_a_canary_is_held_out(workdir, models):
    """Of many models some other one saw each partner; of two none saw half of them."""
    coins(models=models, heldout=False)
    (rows,) = run(only(planned(), "one_run")).values()
    assert number(rows, "right_guesses", "phi", "model=0") > 0.5
