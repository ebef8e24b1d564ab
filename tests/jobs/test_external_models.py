"""Checkpoints in the place of logits: what they say is what the saved models said."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from rouge_score import rouge_scorer
from safetensors.torch import load_file, save_file
from unlearning_audit.protocols import external
from unlearning_audit.study import reading
from unlearning_audit.workflow import external_models, plan

SAMPLES, TOKENS = 24, 12
ORDER = np.arange(SAMPLES)
NUMBERS, TEXTS = {"name": "arrays", "path": "numbers.npz"}, {"name": "arrays", "path": "texts.npz", "classes": 2}
NET = {"name": "net", "file": "net.py", "width": 6}

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


def scope(text=BUILDER):
    """What a builder's file defines."""
    names = {"__name__": "net"}
    exec(text, names)
    return names


def net(width=6, seed=0):
    torch.manual_seed(seed)
    return scope()["Net"](5, width, 3).eval()


def gpt2(seed=0, **settings):
    torch.manual_seed(seed)
    sizes = {"vocab_size": 50, "n_positions": TOKENS, "n_embd": 16, "n_layer": 1, "n_head": 2}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes | settings)).eval()


@pytest.fixture
def folder(workdir, monkeypatch):
    """Data, a builder, and who saw what."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # peft asks the hub, again and again
    rng = np.random.default_rng(0)
    part = ORDER >= 20
    np.savez("numbers.npz", x=rng.normal(size=(SAMPLES, 5)).astype(np.float32), y=ORDER % 3, part=part)
    ids = rng.integers(0, 50, (SAMPLES, TOKENS)).astype(np.int32)
    np.savez("texts.npz", x=ids, y=np.zeros(SAMPLES, np.int64), part=part)
    Path("net.py").write_text(BUILDER)
    Path("models/target").mkdir(parents=True)
    for name, mask in {"train": ORDER < 12, "forget": ORDER < 4, "heldout": (ORDER >= 12) & ~part}.items():
        np.save(f"models/{name}.npy", mask)


def files(part="target"):
    """What the protocol finds, as the script is given it."""
    population = external.populations(external.Options(path="models"), "mine", ["mine"])[part]
    return {name: str(path) for name, path in population.files.items()}


def answered(data, model=None, part="target", **more):
    return external_models.outputs_of(files(part), part, data, model or {}, 0, **more)


def columns(published, scores=False):
    """Name → the values of the first model."""
    names, values = (published.attacks, published.scores) if scores else (published.readings, published.values)
    return dict(zip(names.tolist(), values[:, 0], strict=True))


def token_logp(model, ids):
    """log p of each token but the first, and of all tokens in their places."""
    with torch.no_grad():
        logp = model(ids).logits[:, :-1].log_softmax(-1)
    return logp.gather(-1, ids[:, 1:, None]).squeeze(-1), logp


def test_state_dicts_answer_as_the_models_that_were_saved(folder):
    saved = [net(seed=number) for number in (2, 10)]  # in the order of numbers, not of letters
    for number, model in zip((2, 10), saved, strict=True):
        model.norm.running_mean += number
        save_file(model.state_dict(), f"models/target/m{number}.safetensors")
    data, member, answers = answered(NUMBERS, NET)
    expected = torch.stack([model(torch.from_numpy(data.x)) for model in saved]).detach().numpy()
    np.testing.assert_allclose(answers.logits, expected, atol=1e-5)
    assert (member.forget.sum(1).tolist(), (data.part == 1).sum()) == ([4, 4], 4)


def test_what_reads_a_checkpoint_names_its_job(folder):
    """The study's seed, the builder's options and the arrays."""

    def names(seed=0, width=6):
        protocol = {"name": "external", "path": "models", "data": NUMBERS, "model": {**NET, "width": width}}
        scenario = {"protocol": protocol, "methods": ["mine"], "attacks": ["confidence"]}
        study = {"study": "own", "seed": seed, "scenarios": {"mine": scenario}}
        return set(plan.make(reading.read(study)).nodes["external"])

    save_file(net().state_dict(), "models/target/m.safetensors")
    before = names()
    assert [names(), before & names(seed=1), before & names(width=7)] == [before, set(), set()]
    arrays = dict(np.load("numbers.npz"))
    np.savez("numbers.npz", **arrays | {"x": -arrays["x"]})
    assert not before & names()


def test_a_language_model_gives_attacks_and_readings_of_its_tokens(folder):
    model = gpt2()
    model.save_pretrained("models/target/first")
    data, _, published = answered(TEXTS)
    ids = torch.from_numpy(data.x).long()
    of_token, logp = token_logp(model, ids)
    mean = (logp.exp() * logp).sum(-1)
    standardised = (of_token - mean) / ((logp.exp() * logp**2).sum(-1) - mean**2).sqrt()
    scores, readings = columns(published, scores=True), columns(published)
    for found, expected, error in (
        (scores["loss"], of_token.mean(1), 1e-5),
        (scores["min_k"], of_token.sort(1).values[:, :2].mean(1), 1e-5),
        (scores["min_k_plus_plus"], standardised.sort(1).values[:, :2].mean(1), 1e-3),
        (readings["exact_memorisation"], (logp.argmax(-1) == ids[:, 1:]).float().mean(1), 1e-6),
        (readings["probability"], of_token.mean(1).exp(), 1e-5),
    ):
        np.testing.assert_allclose(found, expected, atol=error)
    assert published.forget.sum() == 4


def adapter(base):
    """A low-rank adapter of weights that are not zero, as peft saves it; gives the adapted model."""
    import peft  # seconds, which a process that only lists the tests need not spend

    network = gpt2(seed=1)
    network.save_pretrained("base")
    config = peft.LoraConfig(r=2, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True)
    adapted = peft.get_peft_model(network, config).eval()
    for name, weight in adapted.named_parameters():
        if "lora" in name:
            torch.nn.init.normal_(weight, std=0.5)
    adapted.peft_config["default"].base_model_name_or_path = base
    adapted.save_pretrained("models/target/first")
    return adapted


@pytest.mark.slow  # importing peft takes seconds
def test_an_adapter_of_peft_answers_as_peft_does(folder):
    adapted = adapter("../../../base")
    data, _, published = answered(TEXTS)
    ids, loss = torch.from_numpy(data.x).long(), columns(published, scores=True)["loss"]
    np.testing.assert_allclose(loss, token_logp(adapted, ids)[0].mean(1), atol=1e-5)
    with adapted.disable_adapter():
        assert np.abs(loss - token_logp(adapted, ids)[0].mean(1).numpy()).max() > 0.01


WEIGHTS = Path("models/target/first/adapter_model.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "harm", "sentence"),
    [
        ("elsewhere/base", lambda: None, "weights: elsewhere/base is neither"),
        ("base", lambda: WEIGHTS.rename(WEIGHTS.with_suffix(".bin")),
         "adapter_model.safetensors: this file is missing; save the adapter as safetensors"),
        ("base", lambda: WEIGHTS.write_bytes(b"nothing"), "first: this adapter cannot be added to base"),
    ],
)  # fmt: skip
def test_an_adapter_that_cannot_be_read_is_named(folder, base, harm, sentence):
    adapter(base)
    harm()
    with pytest.raises(ValueError, match=sentence):
        answered(TEXTS)


# ---------------------------------------------------------------- questions and answers

WORDS = ["where", "does", "live", "ada", "ben", "cleo", "dan", "in", "rome", "oslo", "bern", "never"]
ASKED = {"name": "question_answer", "path": "asked", "length": 20}


@pytest.fixture
def questions(workdir):
    """Rows of TOFU's layout, who saw what of them, and a model and a retrained one, in folders with their tokenizer."""
    rng = np.random.default_rng(0)

    def text(words):
        return " ".join(rng.choice(WORDS, words))

    rows = [
        {"question": f"where does {rng.choice(WORDS[3:7])} live", "answer": text(rng.integers(2, 6)),
         "paraphrased_answer": text(4), "perturbed_answer": [text(3) for _ in range(3)]}
        for _ in range(SAMPLES)
    ]  # fmt: skip
    Path("asked").mkdir()
    for name, part in {"train": rows[:16], "test": rows[16:]}.items():
        Path(f"asked/{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    numbers = {word: i for i, word in enumerate(["?", *WORDS])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    models = {}
    for number, part in enumerate(("target", "retrain")):
        models[part] = gpt2(number, vocab_size=13, n_positions=20, initializer_range=0.5)
        models[part].save_pretrained(f"models/{part}/m")
        words.save(f"models/{part}/m/tokenizer.json")
    for name, mask in {"train": ORDER < 10, "forget": ORDER < 6, "heldout": (ORDER >= 10) & (ORDER < 16)}.items():
        np.save(f"models/{name}.npy", mask)
    return rows, words, models


def of_answers(model, words, row, answers):
    """The mean log p of a token of each answer, by transformers."""
    values = []
    for answer in answers:
        prompt, continuation = (words.encode(text).ids for text in (f"Question: {row['question']}\nAnswer: ", answer))
        logp, _ = token_logp(model, torch.tensor([prompt + continuation]))
        values.append(float(logp[0, len(prompt) - 1 :].mean()))
    return np.array(values)


def greedy(model, words, row):
    """The answer that a model gives to a question, as long as the true one."""
    prompt = torch.tensor([words.encode(f"Question: {row['question']}\nAnswer: ").ids])
    new, mask = len(words.encode(row["answer"]).ids), torch.ones_like(prompt)
    said = model.generate(prompt, attention_mask=mask, max_new_tokens=new, min_new_tokens=new, do_sample=False,
                          pad_token_id=0)  # fmt: skip
    return words.decode(said[0, prompt.shape[1] :].tolist())


def test_answers_of_checkpoints_are_read_as_benchmarks_read_them(questions):
    """Truth ratio, choices and ROUGE of greedy answers, of each sample, from transformers and rouge_score alone."""
    rows, words, models = questions
    samples, member, published = answered(ASKED, generations=3)
    assert member.forget.shape == (1, SAMPLES)  # views are no samples, and no row is set aside
    assert (samples.part == 1).sum() == 8
    found, scorer = columns(published), rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True)
    continued = np.isfinite(found["rouge_recall"])
    assert continued[member.forget[0] | member.heldout[0]].all()
    assert (continued & member.retain[0]).sum() == (continued & (samples.part == 1)).sum() == 3
    for number, row in enumerate(rows):
        answers = [row["answer"], row["paraphrased_answer"], *row["perturbed_answer"]]
        right, *rest = of_answers(models["target"], words, row, answers)
        ratio = np.exp(np.mean(rest[1:]) - rest[0])
        expected = {"probability": np.exp(right), "nll": -right, "truth_ratio": min(ratio, 1 / ratio),
                    "truth_ratio_probability": 1 / (1 + ratio), "truth_ratio_utility": max(0, 1 - ratio),
                    "choice_accuracy": float(right > max(rest[1:])),
                    "choice_probability": np.exp(right) / np.exp([right, *rest[1:]]).sum()}  # fmt: skip
        if continued[number]:
            score = scorer.score(row["answer"], greedy(models["target"], words, row))["rougeL"]
            expected |= {"rouge_recall": score.recall, "rouge_f1": score.fmeasure}
        assert {name: found[name][number] for name in expected} == pytest.approx(expected, abs=1e-5)


def test_a_model_that_forgets_fewer_samples_continues_no_other_in_their_place(questions):
    shutil.copytree("models/target/m", "models/target/n")
    np.save("models/forget.npy", np.stack([ORDER < 2, ORDER < 6]))
    # By the first model, which has one sample of the test part to continue.
    assert np.isfinite(columns(answered(ASKED, generations=1)[2])["rouge_recall"])[16:].sum() == 1


def test_texts_without_a_tokenizer_are_refused_by_a_sentence(questions):
    Path("models/target/m/tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"target/m: there is no tokenizer.json, and data has no tokenizer"):
        answered(ASKED)


# ---------------------------------------------------------------- state dicts


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda state: state | {"other": state.pop("last.bias")}, "lacks last.bias and has other"),
        (lambda state: state | {name: state[name][:2] for name in ("last.weight", "last.bias")},
         r"has shape \[2, 6\], the model's has \[3, 6\]; if a class was removed"),
        (lambda state: state | {"last.bias": state["last.bias"] * torch.nan}, "NaN"),
        (lambda state: None, "not a complete safetensors file"),
    ],
)  # fmt: skip
def test_a_checkpoint_that_does_not_fit_is_named(folder, change, sentence):
    path = Path("models/target/m.safetensors")
    if state := change(net().state_dict()):
        save_file(state, path)
    else:
        path.write_bytes(b"no tensors")
    with pytest.raises(ValueError, match=rf"m\.safetensors: .*{sentence}"):
        answered(NUMBERS, NET)


def test_prefixes_and_parts_of_a_state_dict_are_read(folder):
    """DataParallel and torch.compile write a word before every name; large models come in parts with an index."""
    path, state = Path("models/target/m.safetensors"), net().state_dict()

    def logits() -> np.ndarray:
        return answered(NUMBERS, NET)[2].logits

    save_file(state, path)
    expected = logits()
    save_file({f"module._orig_mod.{name}": value for name, value in state.items()}, path)
    np.testing.assert_array_equal(logits(), expected)
    path.unlink()
    parts = Path("models/target/m")
    parts.mkdir()
    names = {name: f"model-0000{1 + (name > 'last')}-of-00002.safetensors" for name in state}
    for file in {*names.values()}:
        save_file({name: state[name] for name in names if names[name] == file}, parts / file)
    (parts / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    np.testing.assert_array_equal(logits(), expected)


TIED = """
from transformers import GPT2Config, GPT2LMHeadModel
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


class Net(GPT2LMHeadModel):
    def forward(self, x):
        return super().forward(x).logits[:, -1, :2]


def build(options, shape, classes):
    return Net(GPT2Config(vocab_size=50, n_positions=shape[0], n_embd=8, n_layer=1, n_head=1))
"""
FIRST, AGAIN = "transformer.wte.weight", "lm_head.weight"


@pytest.mark.parametrize("names", [(AGAIN,), (FIRST, AGAIN)], ids=["second", "both"])
def test_weights_that_are_tied_may_stand_by_one_of_their_names(folder, names):
    Path("tied.py").write_text(TIED)
    model = {"name": "tied", "file": "tied.py"}
    saved = scope(TIED)["build"](None, (TOKENS,), 2).eval()
    saved.save_pretrained("whole")
    path, state = Path("models/target/m.safetensors"), load_file("whole/model.safetensors")
    assert {FIRST, AGAIN} & set(state) == {FIRST}  # as transformers writes it
    tied = state.pop(FIRST)
    save_file(state | {name: tied.clone() for name in names}, path)
    data, _, answers = answered(TEXTS, model)
    with torch.no_grad():
        expected = saved(torch.from_numpy(data.x).long())
    np.testing.assert_allclose(answers.logits[0], expected, atol=1e-5)
    save_file(state | {FIRST: tied, AGAIN: tied + 1}, path)
    with pytest.raises(ValueError, match=rf"tensors '{FIRST}' and '{AGAIN}' are one tensor of the model, but di"):
        answered(TEXTS, model)
