"""Language models as classifiers of passages, and classifiers of sentences: losses by hand, marks, company."""

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM, BertConfig, BertModel, GPT2LMHeadModel
from unlearning_audit.metrics import _text
from unlearning_audit.models import bert, distilbert, embedding_bag, gpt2, gpt_neox, llama
from unlearning_audit.models._passage import mean_nll, two_classes
from unlearning_audit.training import tokens
from unlearning_audit.training.recipe import Recipe
from unlearning_audit.training.stack import ModelStack
from unlearning_audit.training.streams import Rows

from stack_cases import fresh
from text_cases import LENGTH, SEEDS, VOCABULARY, passages, save_models, stack

CAUSAL = (gpt2, gpt_neox, llama)


SENTENCE = (bert, distilbert, embedding_bag)


SMALL = {"vocabulary": VOCABULARY, "layers": 1, "width": 12, "heads": 2}


def network(module, classes=2):
    options = {k: v for k, v in SMALL.items() if k in module.Options.model_fields}
    return module.build(module.Options(**options), (LENGTH,), classes)


def built(module, classes=2):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return network(module, classes).double()


def ids() -> np.ndarray:
    """The tiny passages without any mark."""
    x = passages()
    return np.where(x < 0, ~x, x)


@pytest.mark.parametrize("module", CAUSAL)
def test_cross_entropy_of_the_two_classes_is_the_loss_of_transformers_own_model(module):
    model, x = built(module), ids()
    reference = AutoModelForCausalLM.from_config(model.trunk.config).double()
    prefix = {gpt2: "transformer.", gpt_neox: "gpt_neox.", llama: "model."}[module]
    state = {prefix + k: v for k, v in model.trunk.state_dict().items()}
    if model.output is not None:
        state |= {k: model.output.weight for k in reference.state_dict() if k.startswith(("lm_head", "embed_out"))}
    assert not reference.load_state_dict(state, strict=False).unexpected_keys
    reference.tie_weights()
    for row in torch.from_numpy(x).long()[:5]:
        loss = reference(input_ids=row[None], labels=row[None]).loss
        actual = functional.cross_entropy(model(row[None]), torch.zeros(1, dtype=torch.int64))
        # Their loss is taken in single precision.
        assert abs(float(loss) - float(actual)) < 2e-6


@pytest.mark.parametrize("module", CAUSAL)
def test_what_is_not_scored_is_read_and_padding_is_not(module):
    model, x = built(module), torch.from_numpy(passages())
    logits = model(x)
    padded = x.clone()
    padded[2::3, 6:] = ~torch.tensor(7, dtype=torch.int32)  # any token that is not scored, at the end
    assert torch.allclose(model(padded), logits, rtol=0, atol=1e-12)
    shorter = model(x[2::3, :6])
    assert torch.allclose(shorter, logits[2::3], rtol=0, atol=1e-12)
    variant = x.clone()
    variant[1::3, 2] = ~torch.tensor(9, dtype=torch.int32)  # another question before the same answer
    assert (model(variant) - logits)[1::3, 0].abs().min() > 1e-9
    first = x.clone()
    first[0::3, 0] = ~first[0::3, 0]  # the first token is predicted from nothing
    assert torch.equal(model(first), logits)


@pytest.mark.parametrize("module", [*CAUSAL, bert, distilbert])
def test_nothing_drops_out_and_training_draws_nothing(module):
    model, x = built(module).train(), torch.from_numpy(passages())
    before = torch.get_rng_state()
    assert torch.equal(model(x), model(x))
    assert torch.equal(torch.get_rng_state(), before)
    rates = {k: v for k, v in vars(model.trunk.config).items() if "drop" in k and isinstance(v, float)}
    assert not any(rates.values())


@pytest.mark.parametrize("module", SENTENCE)
def test_a_classifier_of_sentences_reads_all_but_padding(module):
    model, x = built(module, classes=5), ids()
    x[::2, 5:] = -1
    logits = model(torch.from_numpy(x))
    assert logits.shape == (len(x), 5)
    assert {n for n in model.state_dict() if n.startswith(model.head)} == {"output.weight", "output.bias"}
    cut = model(torch.from_numpy(x[::2, :5]))
    assert torch.allclose(cut, logits[::2], rtol=0, atol=1e-12)


def test_a_bag_is_the_mean_of_its_vectors_by_hand():
    model, x = built(embedding_bag, classes=3), passages()
    row = torch.from_numpy(np.where(x < 0, -1, x))[2]
    vector = model.tokens.weight[row[row >= 0].long()].mean(0)
    hidden = (model.hidden.weight @ vector + model.hidden.bias).clamp(min=0)
    assert torch.allclose(model(row[None])[0], model.output.weight @ hidden + model.output.bias, rtol=0, atol=1e-14)


# ---------------------------------------------------------------- in the stack


@pytest.mark.parametrize("module", [*CAUSAL, *SENTENCE])
@pytest.mark.parametrize("backend", ["serial", "stacked"])
def test_a_model_trains_the_same_in_any_company(module, backend):
    x = passages() if module in CAUSAL else np.maximum(passages(), -1)

    def trained(seeds):
        recipe = Recipe(optimiser="adamw", lr=1e-2, batch_size=8, epochs=1)
        models = ModelStack.create(
            lambda: network(module), x, np.zeros(len(x), np.int64), seeds, recipe=recipe, backend=backend
        )
        models.train(Rows(np.tile(np.arange(20), (len(seeds), 1))))
        return models

    whole = trained(SEEDS)
    for subset in ([2, 0], [1], [2, 1, 0]):
        part = trained([SEEDS[i] for i in subset])
        assert all(torch.equal(v, whole.parameters[k][subset]) for k, v in part.parameters.items()), subset
        assert np.array_equal(part.logits(), whole.logits()[subset])


def test_stacked_and_serial_agree():
    stacked, serial = stack(backend="stacked", epochs=1), stack(backend="serial", epochs=1)
    assert max(float((v - serial.parameters[k]).abs().max()) for k, v in stacked.parameters.items()) < 1e-10


def test_models_without_tokens_say_so():
    with pytest.raises(ValueError, match="only language models predict"):
        tokens.readings(fresh(), np.arange(2))


class Table(torch.nn.Module):
    """A model whose probabilities are known: of token b after token a, row a of a table."""

    readings, vocabulary, head = ("tokens",), 5, None

    def __init__(self):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.zeros(5, 5, dtype=torch.float64))

    def forward(self, x, reading=None):
        z = self.logits[torch.where(x < 0, ~x, x).long()][..., :-1, :]
        return z if reading == "tokens" else two_classes(mean_nll(z, x))


def test_a_table_of_bigrams_has_the_closed_form_of_every_reading():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), 5)
    x = np.int32([[0, 1, 2, 3], [4, 4, 4, -1], [2, ~np.int32(3), 1, 0]])
    models = ModelStack.create(Table, x, np.zeros(3, np.int64), [1], dtype=torch.float64)
    models.parameters["logits"][0] = torch.from_numpy(np.log(p))
    pairs = [[(0, 1), (1, 2), (2, 3)], [(4, 4), (4, 4)], [(3, 1), (1, 0)]]
    expected = [-np.mean([np.log(p[a, b]) for a, b in row]) for row in pairs]
    np.testing.assert_allclose(_text.nll(models.logits())[0], expected, rtol=1e-6)
    readings = tokens.readings(models, np.arange(3))[0]
    assert np.isnan(readings[..., 0]).tolist() == [[False] * 3, [False, False, True], [False, False, True]]
    for values, row in zip(readings, pairs, strict=True):
        for four, (a, b) in zip(values, row, strict=False):
            mean = (p[a] * np.log(p[a])).sum()
            spread = np.sqrt((p[a] * (np.log(p[a]) - mean) ** 2).sum())
            np.testing.assert_allclose(four, [np.log(p[a, b]), mean, spread, (p[a] > p[a, b]).sum()], 1e-6)
    # Only the most scored tokens of a sample take room.
    models.x = models.x[:, :3]
    assert tokens.readings(models, np.arange(3)).shape == (1, 3, 2, 4)


# ---------------------------------------------------------------- weights from a folder


def test_weights_come_from_a_folder(tmp_path):
    save_models(tmp_path)
    options = gpt2.Options(weights=str(tmp_path / "gpt2"))
    reference = GPT2LMHeadModel.from_pretrained(options.weights)
    model = gpt2.build(options, (LENGTH,), 2)
    for name, value in reference.transformer.state_dict().items():
        assert torch.equal(model.trunk.state_dict()[name], value), name
    assert model.vocabulary == VOCABULARY
    second = gpt2.build(options, (LENGTH,), 2)
    with torch.no_grad():
        next(second.parameters()).zero_()
    assert next(model.parameters()).any(), "models share no memory"


def test_an_encoder_takes_its_trunk_from_a_folder(tmp_path):
    config = BertConfig(vocab_size=VOCABULARY, hidden_size=12, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=16, max_position_embeddings=12)  # fmt: skip
    reference = BertModel(config)
    reference.save_pretrained(tmp_path)
    model = bert.build(bert.Options(weights=str(tmp_path)), (LENGTH,), 4)
    trunk = model.trunk.state_dict()
    assert trunk
    assert all(torch.equal(reference.state_dict()[name], value) for name, value in trunk.items())


def test_unusable_weights_and_samples_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    save_models(tmp_path)
    with pytest.raises(ValueError, match=rf"{LENGTH} positions; shorten data.length"):
        gpt2.build(gpt2.Options(weights=str(tmp_path / "gpt2")), (LENGTH + 1,), 2)
    with pytest.raises(ValueError, match=r"weights: .*nothing.* name a folder"):
        gpt2.build(gpt2.Options(weights=str(tmp_path / "nothing")), (LENGTH,), 2)
    for module in (gpt2, embedding_bag, bert):
        with pytest.raises(ValueError, match=r"needs tokens \[length\]"):
            module.build(module.Options(), (3, 32, 32), 2)


def test_tiny_is_gpt2_small_in_small():
    """The published size of GPT-2 small, from its printed dimensions, without building it."""
    options = gpt2.Options(vocabulary=50257, layers=12, width=768, heads=12)
    with torch.device("meta"):
        model = gpt2.build(options, (1024,), 2)
    assert round(sum(p.numel() for p in model.parameters()) / 1e6) == 124
