"""Checkpoints in the place of logits: what they say is what the saved models said."""

import numpy as np
import peft
import pytest
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel
from unlearning_audit.artifacts.published import Published
from unlearning_audit.protocols import external
from unlearning_audit.workflow import checkpoints

SAMPLES, TOKENS = 24, 12

BUILDER = """
from torch import nn
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    width: int = 8


class Net(nn.Module):
    head = "last"

    def __init__(self, inputs, width, classes):
        super().__init__()
        self.first, self.norm = nn.Linear(inputs, width), nn.BatchNorm1d(width)
        self.last = nn.Linear(width, classes)

    def forward(self, x):
        return self.last(self.norm(self.first(x)).relu())


def build(options, shape, classes):
    return Net(shape[0], options.width, classes)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Data, a builder, and who saw what, of two models."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    part = np.arange(SAMPLES) >= 20
    np.savez("numbers.npz", x=rng.normal(size=(SAMPLES, 5)).astype(np.float32), y=np.arange(SAMPLES) % 3, part=part)
    ids = rng.integers(0, 50, (SAMPLES, TOKENS)).astype(np.int32)
    np.savez("texts.npz", x=ids, y=np.zeros(SAMPLES, np.int64), part=part)
    (tmp_path / "net.py").write_text(BUILDER)
    (tmp_path / "models/target").mkdir(parents=True)
    train = np.arange(SAMPLES) < 12
    np.save("models/train.npy", train)
    np.save("models/forget.npy", np.arange(SAMPLES) < 4)
    np.save("models/heldout.npy", (np.arange(SAMPLES) >= 12) & ~part)
    return tmp_path


def files(**options):
    """What the protocol finds, as the script is given it."""
    chosen = external.Options(path="models", **options)
    population = external.populations(chosen, "mine", ["mine"])["target"]
    return {name: str(path) for name, path in population.files.items()}


def test_state_dicts_answer_as_the_models_that_were_saved(folder):
    scope = {"__name__": "net"}
    exec(BUILDER, scope)
    saved = []
    for number in (2, 10):  # in the order of numbers, not of letters
        torch.manual_seed(number)
        model = scope["Net"](5, 6, 3)
        model.norm.running_mean += number
        save_file(model.state_dict(), folder / f"models/target/m{number}.safetensors")
        saved.append(model.eval())
    model = {"name": "net", "file": "net.py", "width": 6}
    data, member, answers = checkpoints.answered(files(), "target", {"name": "arrays", "path": "numbers.npz"}, model, 0)
    x = torch.from_numpy(data.x)
    wanted = torch.stack([one(x) for one in saved]).detach().numpy()
    np.testing.assert_allclose(answers.logits, wanted, atol=1e-5)
    assert member.forget.sum(1).tolist() == [4, 4]
    assert (data.part == 1).sum() == 4


def test_a_language_model_gives_attacks_and_readings_of_its_tokens(folder):
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=TOKENS, n_embd=16, n_layer=1, n_head=2)).eval()
    model.save_pretrained(folder / "models/target/first")
    data, _, published = checkpoints.answered(
        files(), "target", {"name": "arrays", "path": "texts.npz", "classes": 2}, {}, 0
    )
    assert isinstance(published, Published)
    ids = torch.from_numpy(data.x).long()
    with torch.no_grad():
        logp = model(ids).logits[:, :-1].log_softmax(-1)
    own = logp.gather(-1, ids[:, 1:, None]).squeeze(-1)
    values = dict(zip(published.attacks.tolist(), published.scores[:, 0], strict=True))
    np.testing.assert_allclose(values["loss"], own.mean(1), atol=1e-5)
    np.testing.assert_allclose(values["min_k"], own.sort(1).values[:, :2].mean(1), atol=1e-5)
    spread = (logp.exp() * logp**2).sum(-1) - (logp.exp() * logp).sum(-1) ** 2
    standard = (own - (logp.exp() * logp).sum(-1)) / spread.sqrt()
    np.testing.assert_allclose(values["min_k_plus_plus"], standard.sort(1).values[:, :2].mean(1), atol=1e-3)
    readings = dict(zip(published.readings.tolist(), published.values[:, 0], strict=True))
    np.testing.assert_allclose(
        readings["exact_memorisation"], (logp.argmax(-1) == ids[:, 1:]).float().mean(1), atol=1e-6
    )
    np.testing.assert_allclose(readings["probability"], own.mean(1).exp(), atol=1e-5)
    assert published.forget.sum() == 4


def adapter(folder, base):
    """A low-rank adapter of weights that are not zero, as peft saves it; gives the adapted model."""
    torch.manual_seed(1)
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=TOKENS, n_embd=16, n_layer=1, n_head=2)).eval()
    theirs.save_pretrained(folder / "base")
    config = peft.LoraConfig(
        r=2, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True, base_model_name_or_path=base
    )
    adapted = peft.get_peft_model(theirs, config).eval()
    for name, weight in adapted.named_parameters():
        if "lora" in name:
            torch.nn.init.normal_(weight, std=0.5)
    adapted.peft_config["default"].base_model_name_or_path = base
    adapted.save_pretrained(folder / "models/target/first")
    return adapted


@pytest.mark.parametrize("base", ["base", "../../../base"])
def test_an_adapter_of_peft_answers_as_peft_does(folder, base):
    adapted = adapter(folder, base)
    data, _, published = checkpoints.answered(
        files(), "target", {"name": "arrays", "path": "texts.npz", "classes": 2}, {}, 0
    )
    ids = torch.from_numpy(data.x).long()

    def loss():
        with torch.no_grad():
            return adapted(ids).logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1).mean(1)

    scores = dict(zip(published.attacks.tolist(), published.scores[:, 0], strict=True))
    np.testing.assert_allclose(scores["loss"], loss(), atol=1e-5)
    with adapted.disable_adapter():
        assert np.abs(scores["loss"] - loss().numpy()).max() > 0.01


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        ("base", "adapter_config.json: base_model_name_or_path: weights: elsewhere/base is neither"),
        ("unnamed", "adapter_config.json: base_model_name_or_path is missing; set it"),
        ("pickle", "adapter_model.safetensors: this file is missing; save the adapter as safetensors"),
        ("broken", "first: this adapter cannot be added to base"),
    ],
)
def test_an_adapter_that_cannot_be_read_is_named(folder, problem, sentence):
    adapter(folder, "elsewhere/base" if problem == "base" else "base")
    place = folder / "models/target/first"
    if problem == "unnamed":
        (place / "adapter_config.json").write_text("{}")
    elif problem == "pickle":
        (place / "adapter_model.safetensors").rename(place / "adapter_model.bin")
    elif problem == "broken":
        (place / "adapter_model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=sentence):
        checkpoints.answered(files(), "target", {"name": "arrays", "path": "texts.npz", "classes": 2}, {}, 0)


def test_extraction_strength_is_the_share_of_the_end_that_is_right():
    first = np.array([[1, 0, 1, 1, np.nan], [1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [0, 1, np.nan, np.nan, np.nan]])
    np.testing.assert_allclose(checkpoints._strength(first), [0.5, 1, 0, 0.5])


@pytest.mark.parametrize("problem", ["missing", "shape", "nan", "file"])
def test_a_checkpoint_that_does_not_fit_is_named(folder, problem):
    scope = {"__name__": "net"}
    exec(BUILDER, scope)
    path, state = folder / "models/target/m.safetensors", scope["Net"](5, 6, 3).state_dict()
    if problem == "missing":
        state["other"] = state.pop("last.bias")
    elif problem == "shape":
        state["last.bias"] = torch.zeros(4)
    elif problem == "nan":
        state["last.bias"][0] = torch.nan
    save_file(state, path)
    if problem == "file":
        path.write_bytes(b"no tensors")
    sentence = {"missing": "lacks last.bias and has other", "shape": r"'last.bias' has shape \[4\]", "nan": "NaN",
                "file": "no whole file of safetensors"}[problem]  # fmt: skip
    model = {"name": "net", "file": "net.py", "width": 6}
    with pytest.raises(ValueError, match=sentence) as error:
        checkpoints.answered(files(), "target", {"name": "arrays", "path": "numbers.npz"}, model, 0)
    assert "m.safetensors" in str(error.value)
