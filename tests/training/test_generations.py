"""What language models say by themselves: against transformers' decoding, in any company; what is read of it."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from scipy.stats import chi2
from unlearning_audit import ROOT
from unlearning_audit.data import _tokens
from unlearning_audit.evaluation.arrays import Data
from unlearning_audit.evaluation.signal_files import Generations, Sampled, continued_samples
from unlearning_audit.training import generation

from passage_cases import member
from stack_cases import fresh
from text_cases import SEEDS, passages, stack

# ---------------------------------------------------------------- greedy decoding


@pytest.fixture(scope="module")
def models():
    return stack(dtype=torch.float64)


def test_it_is_the_greedy_decoding_of_transformers(models):
    x, rows = passages(), np.tile(np.array([0, 1, 2, 4, 5]), (3, 1))
    answers = generation.greedy(models, rows)
    assert answers.dtype == np.int32
    model = models.extract(1)
    reference = transformers.GPT2LMHeadModel(model.trunk.config).double().eval()
    reference.load_state_dict({f"transformer.{k}": v for k, v in model.trunk.state_dict().items()}, strict=False)
    reference.tie_weights()
    for place, row in enumerate(rows[1]):
        scored = np.flatnonzero(_tokens.scored(x[row]))
        prompt = torch.from_numpy(_tokens.ids(x[row, : scored[0]])).long()[None]
        new = scored[-1] - scored[0] + 1
        expected = reference.generate(
            prompt, max_new_tokens=new, min_new_tokens=new, do_sample=False, attention_mask=torch.ones_like(prompt),
            pad_token_id=0,
        )[0, scored[0] :]  # fmt: skip
        assert answers[1, place, :new].tolist() == expected.tolist()
        assert (answers[1, place, new:] == -1).all()


def test_a_model_says_the_same_in_any_company_and_order(monkeypatch):
    monkeypatch.setattr(generation, "CHUNK", 4)
    whole = stack(dtype=torch.float32)
    rows = np.stack([np.arange(6), np.r_[np.arange(9, 13), -1, -1], np.arange(20, 26)])
    answers = generation.greedy(whole, rows)
    assert (answers[1, 4:] == -1).all()
    assert (answers[0] >= 0).any(1).all()
    for subset in ([1], [2, 0]):
        part = stack(seeds=[SEEDS[i] for i in subset], dtype=torch.float32)
        assert np.array_equal(generation.greedy(part, rows[subset]), answers[subset])


def test_sampled_answers_are_those_of_the_model_s_distribution(models):
    """The first token of 1,500 answers against its probabilities, chi-squared; the second given the commonest first."""
    rows, answers = np.array([[-1], [4], [-1]]), 1500
    sample = generation.sampled(models, rows, answers)[1, 0]
    x = torch.from_numpy(passages()[[4]])
    first = int(generation.scored_bounds(x)[0])
    text = torch.where(x < 0, ~x, x)[:, :first]
    commonest = np.bincount(sample[:, 0]).argmax()
    after = torch.cat([text, torch.tensor([[commonest]])], 1)
    for prompt, tokens in ((text, sample[:, 0]), (after, sample[sample[:, 0] == commonest, 1])):
        with torch.no_grad():
            p = torch.softmax(models.output(models.state(1), prompt, "next")[0].double(), -1).numpy()
        expected, observed = len(tokens) * p, np.bincount(tokens, minlength=len(p))
        assert chi2.sf(((observed - expected) ** 2 / expected).sum(), len(p) - 1) > 1e-4
    assert (np.unique(sample, axis=0).shape[0]) > answers / 2


def test_a_quantile_is_a_token_whatever_rounding_does():
    """At 0 the first token that has any probability, just below 1 the last such one, never one that has none."""
    logits = torch.tensor([[-torch.inf, 0.0, 0.0, -torch.inf]]).repeat(3, 1)
    uniform = torch.tensor([[0.0], [0.49], [1 - 2**-53]], dtype=torch.float64)
    assert generation.at_quantile(logits, uniform[:, 0]).tolist() == [1, 1, 2]


def test_models_without_tokens_say_nothing():
    for say in (generation.greedy, lambda *of: generation.sampled(*of, 2)):
        with pytest.raises(ValueError, match="only language models say"):
            say(fresh(), np.zeros((1, 1), np.int64))


@pytest.mark.parametrize(
    ("settings", "kind"),
    [({"signal": "generations", "most": 2}, Generations), ({"signal": "sampled", "most": 0, "answers": 3}, Sampled)],
)
def test_a_batch_of_shadow_models_alone_says_nothing(tmp_path, monkeypatch, settings, kind):
    """The job ends well, and its file is one of no model; no weights are opened."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    script = importlib.import_module("signals")
    x = passages()
    y = np.zeros(len(x), np.int64)
    data = Data(x, y, np.zeros(len(x), np.uint8), y, np.arange(len(x)), 1)
    data.write(tmp_path / "data.npz")
    replace(member(samples=len(x)), shadow=np.ones(3, bool)).write(tmp_path / "membership.npz")
    source, splits, written = (str(tmp_path / f"{name}.npz") for name in ("data", "membership", "generations"))
    assert script.signals(source, [splits], ["no weights"], written, settings, {}) == {"models": 0}
    assert kind.read(written).index.shape[0] == 0


def test_who_is_asked_depends_on_the_model_alone():
    whole, part = member(), (np.arange(20) >= 16).astype(np.uint8)
    index = continued_samples(whole, part, 3)
    assert index.shape == (3, 8 + 3 + 3)
    for samples in map(set, index):
        assert samples >= set(range(8))
        assert len(samples & set(range(8, 16))) == len(samples & set(range(16, 20))) == 3
    assert np.array_equal(continued_samples(whole[np.array([2])], part, 3), index[[2]])
    assert len({tuple(row) for row in index}) > 1, "other models, other retained samples"
