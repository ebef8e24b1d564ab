"""Checkpoints in the place of logits: what they say is what the saved models said."""

import json
import re
from pathlib import Path

import numpy as np
import peft
import pytest
import tokenizers
import torch
from rouge_score import rouge_scorer
from safetensors.torch import load_file, save_file
from scipy.stats import hmean, ks_2samp
from sklearn.metrics import roc_auc_score
from transformers import GPT2Config, GPT2LMHeadModel
from unlearning_audit.evaluation.published import Published
from unlearning_audit.metrics import texts
from unlearning_audit.protocols import external
from unlearning_audit.study import reading
from unlearning_audit.workflow import external_models, plan, trial

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


def files(part="target", **options):
    """What the protocol finds, as the script is given it."""
    settings = external.Options(path="models", **options)
    population = external.populations(settings, "mine", ["mine"])[part]
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
    data, member, answers = external_models.answered(
        files(), "target", {"name": "arrays", "path": "numbers.npz"}, model, 0
    )
    x = torch.from_numpy(data.x)
    expected = torch.stack([network(x) for network in saved]).detach().numpy()
    np.testing.assert_allclose(answers.logits, expected, atol=1e-5)
    assert member.forget.sum(1).tolist() == [4, 4]
    assert (data.part == 1).sum() == 4


def test_a_language_model_gives_attacks_and_readings_of_its_tokens(folder):
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=TOKENS, n_embd=16, n_layer=1, n_head=2)).eval()
    model.save_pretrained(folder / "models/target/first")
    data, _, published = external_models.answered(
        files(), "target", {"name": "arrays", "path": "texts.npz", "classes": 2}, {}, 0
    )
    assert isinstance(published, Published)
    ids = torch.from_numpy(data.x).long()
    with torch.no_grad():
        logp = model(ids).logits[:, :-1].log_softmax(-1)
    token_logp = logp.gather(-1, ids[:, 1:, None]).squeeze(-1)
    values = dict(zip(published.attacks.tolist(), published.scores[:, 0], strict=True))
    np.testing.assert_allclose(values["loss"], token_logp.mean(1), atol=1e-5)
    np.testing.assert_allclose(values["min_k"], token_logp.sort(1).values[:, :2].mean(1), atol=1e-5)
    spread = (logp.exp() * logp**2).sum(-1) - (logp.exp() * logp).sum(-1) ** 2
    standard = (token_logp - (logp.exp() * logp).sum(-1)) / spread.sqrt()
    np.testing.assert_allclose(values["min_k_plus_plus"], standard.sort(1).values[:, :2].mean(1), atol=1e-3)
    readings = dict(zip(published.readings.tolist(), published.values[:, 0], strict=True))
    np.testing.assert_allclose(
        readings["exact_memorisation"], (logp.argmax(-1) == ids[:, 1:]).float().mean(1), atol=1e-6
    )
    np.testing.assert_allclose(readings["probability"], token_logp.mean(1).exp(), atol=1e-5)
    assert published.forget.sum() == 4


def adapter(folder, base):
    """A low-rank adapter of weights that are not zero, as peft saves it; gives the adapted model."""
    torch.manual_seed(1)
    network = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=TOKENS, n_embd=16, n_layer=1, n_head=2)).eval()
    network.save_pretrained(folder / "base")
    config = peft.LoraConfig(
        r=2, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True, base_model_name_or_path=base
    )
    adapted = peft.get_peft_model(network, config).eval()
    for name, weight in adapted.named_parameters():
        if "lora" in name:
            torch.nn.init.normal_(weight, std=0.5)
    adapted.peft_config["default"].base_model_name_or_path = base
    adapted.save_pretrained(folder / "models/target/first")
    return adapted


@pytest.mark.parametrize("base", ["base", "../../../base"])
def test_an_adapter_of_peft_answers_as_peft_does(folder, base):
    adapted = adapter(folder, base)
    data, _, published = external_models.answered(
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
        external_models.answered(files(), "target", {"name": "arrays", "path": "texts.npz", "classes": 2}, {}, 0)


QUESTIONS, WORDS = 24, ["where", "does", "live", "ada", "ben", "cleo", "dan", "in", "rome", "oslo", "bern", "never"]


@pytest.fixture
def questions(tmp_path, monkeypatch):
    """Rows of TOFU's layout, who saw what of them, and a model and a retrained one, in folders with their tokenizer."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        {
            "question": f"where does {rng.choice(WORDS[3:7])} live",
            "answer": " ".join(rng.choice(WORDS, rng.integers(2, 6))),
            "paraphrased_answer": " ".join(rng.choice(WORDS, 4)),
            "perturbed_answer": [" ".join(rng.choice(WORDS, 3)) for _ in range(3)],
        }
        for _ in range(QUESTIONS)
    ]
    (tmp_path / "asked").mkdir()
    parts = {"train": rows[:16], "test": rows[16:]}
    for name, part in parts.items():
        (tmp_path / f"asked/{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(["?", *WORDS])}, unk_token="?")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    models = {}
    for number, part in enumerate(("target", "retrain")):
        torch.manual_seed(number)
        config = GPT2Config(vocab_size=13, n_positions=20, n_embd=16, n_layer=1, n_head=2, initializer_range=0.5)
        models[part] = GPT2LMHeadModel(config).eval()
        models[part].save_pretrained(tmp_path / "models" / part / "m")
        words.save(str(tmp_path / "models" / part / "m/tokenizer.json"))
    order = np.arange(QUESTIONS)
    np.save("models/train.npy", order < 10)
    np.save("models/forget.npy", order < 6)
    np.save("models/heldout.npy", (order >= 10) & (order < 16))
    return rows, words, models


def of_answers(model, words, row, answers):
    """The mean log p of a token of each answer, by transformers."""
    values = []
    for answer in answers:
        prompt, continuation = (words.encode(text).ids for text in (f"Question: {row['question']}\nAnswer: ", answer))
        with torch.no_grad():
            logp = model(torch.tensor([prompt + continuation])).logits[0].log_softmax(-1)
        values.append(np.mean([float(logp[len(prompt) + i - 1, token]) for i, token in enumerate(continuation)]))
    return np.array(values)


def test_answers_of_checkpoints_are_read_as_benchmarks_read_them(questions):
    """Truth ratio, choices and ROUGE of greedy answers, of each sample, from transformers and rouge_score alone."""
    rows, words, models = questions
    data = {"name": "question_answer", "path": "asked", "length": 20}
    samples, member, published = external_models.answered(files(), "target", data, {}, 0, generations=3)
    assert member.forget.shape == (1, QUESTIONS)  # views are no samples, and no row is set aside
    assert (samples.part == 1).sum() == 8
    columns = dict(zip(published.readings.tolist(), published.values[:, 0], strict=True))
    scorer = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True)
    continued = np.isfinite(columns["rouge_recall"])
    assert continued[member.forget[0] | member.heldout[0]].all()
    assert (continued & member.retain[0]).sum() == (continued & (samples.part == 1)).sum() == 3
    for number, row in enumerate(rows):
        right, *rest = of_answers(
            models["target"], words, row, [row["answer"], row["paraphrased_answer"], *row["perturbed_answer"]]
        )
        ratio = np.exp(np.mean(rest[1:]) - rest[0])
        expected = {
            "probability": np.exp(right), "nll": -right, "truth_ratio": min(ratio, 1 / ratio),
            "truth_ratio_probability": 1 / (1 + ratio), "truth_ratio_utility": max(0, 1 - ratio),
            "choice_accuracy": float(right > max(rest[1:])),
            "choice_probability": np.exp(right) / np.exp([right, *rest[1:]]).sum(),
        }  # fmt: skip
        for name, value in expected.items():
            assert columns[name][number] == pytest.approx(value, abs=1e-5), name
        if continued[number]:
            prompt = torch.tensor([words.encode(f"Question: {row['question']}\nAnswer: ").ids])
            new = len(words.encode(row["answer"]).ids)
            text = models["target"].generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=new, min_new_tokens=new, do_sample=False,
                pad_token_id=0,
            )[0, prompt.shape[1] :]  # fmt: skip
            score = scorer.score(row["answer"], words.decode(text.tolist()))["rougeL"]
            assert columns["rouge_recall"][number] == pytest.approx(score.recall)
            assert columns["rouge_f1"][number] == pytest.approx(score.fmeasure)


def test_what_readings_tell_together_is_what_scipy_computes(questions):
    rows, words, models = questions
    data = {"name": "question_answer", "path": "asked", "length": 20}
    answers = {part: external_models.answered(files(part), part, data, {}, 0, generations=8)
               for part in ("target", "retrain")}  # fmt: skip
    samples, _, audited = answers["target"]
    lines = {(line.metric, line.role): line.value for line in texts.of(audited, answers["retrain"][2], samples)}
    ratios, least = {}, {}
    for part, model in models.items():
        logp = [of_answers(model, words, row, [row["paraphrased_answer"], *row["perturbed_answer"]]) for row in rows]
        ratios[part] = [value[1:].mean() - value[0] for value in logp]
        column = answers[part][2].readings.tolist().index("min_k_of_privleak")
        least[part] = answers[part][2].values[column, 0]
    test = ks_2samp(ratios["target"][:6], ratios["retrain"][:6])
    assert lines["forget_quality", "forget"] == pytest.approx(test.pvalue)
    assert lines["truth_ratio_ks", "forget"] == pytest.approx(test.statistic)
    side = np.arange(12) < 6
    aucs = [1 - roc_auc_score(side, np.concatenate([least[p][:6], least[p][10:16]])) for p in ("target", "retrain")]
    assert lines["privleak", ""] == pytest.approx(100 * (aucs[0] - aucs[1]) / aucs[1])
    columns = dict(zip(audited.readings.tolist(), audited.values[:, 0], strict=True))
    terms = [columns[name][6:10] for name in texts.RETAIN_TERMS] + [columns[name][16:] for name in texts.TEST_TERMS]
    assert lines["model_utility", ""] == pytest.approx(hmean([np.mean(term) for term in terms]))
    assert lines["perplexity", "test"] == pytest.approx(np.exp(columns["nll"][16:].mean()))


def test_texts_without_a_tokenizer_are_refused_by_a_sentence(questions):
    Path("models/target/m/tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"target/m: there is no tokenizer.json, and data has no tokenizer"):
        external_models.answered(files(), "target", {"name": "question_answer", "path": "asked"}, {}, 0)


@pytest.mark.parametrize("problem", ["missing", "shape", "fewer", "nan", "file"])
def test_a_checkpoint_that_does_not_fit_is_named(folder, problem):
    scope = {"__name__": "net"}
    exec(BUILDER, scope)
    path, state = folder / "models/target/m.safetensors", scope["Net"](5, 6, 3).state_dict()
    if problem == "missing":
        state["other"] = state.pop("last.bias")
    elif problem == "shape":
        state["last.bias"] = torch.zeros(4)
    elif problem == "fewer":
        state = {name: value[:2] if name.startswith("last") else value for name, value in state.items()}
    elif problem == "nan":
        state["last.bias"][0] = torch.nan
    save_file(state, path)
    if problem == "file":
        path.write_bytes(b"no tensors")
    sentence = {"missing": "lacks last.bias and has other", "shape": r"'last.bias' has shape \[4\]",
                "fewer": r"has shape \[2, 6\], the model's has \[3, 6\]; if a class was removed", "nan": "NaN",
                "file": "not a complete safetensors file"}[problem]  # fmt: skip
    model = {"name": "net", "file": "net.py", "width": 6}
    with pytest.raises(ValueError, match=sentence) as error:
        external_models.answered(files(), "target", {"name": "arrays", "path": "numbers.npz"}, model, 0)
    assert "m.safetensors" in str(error.value)
    if problem == "nan":  # a value, which is no concern of headers
        assert external_models.check([(files(), "target")], {"name": "arrays", "path": "numbers.npz"}, model, 0) == 1
        return
    with pytest.raises(ValueError, match=sentence) as before:
        external_models.check([(files(), "target")], {"name": "arrays", "path": "numbers.npz"}, model, 0)
    assert "m.safetensors" in str(before.value)


@pytest.mark.parametrize("answer", ["(x, x)", "{'logits': x}", "x[:, :1]"])
def test_a_model_that_answers_with_something_else_is_told_before_a_run(folder, answer):
    text = BUILDER.replace(
        "return self.last(self.norm(self.first(x)).relu())",
        f"x = self.last(self.norm(self.first(x)).relu())\n        return {answer}",
    )
    scope = {"__name__": "net"}
    exec(text, scope)
    (folder / "net.py").write_text(text)
    save_file(scope["Net"](5, 6, 3).state_dict(), folder / "models/target/m.safetensors")
    model = {"name": "net", "file": "net.py", "width": 6}
    with pytest.raises(ValueError, match=r"must return logits \[2, 3\] for two samples; it returned"):
        external_models.check([(files(), "target")], {"name": "arrays", "path": "numbers.npz"}, model, 0)


def test_prefixes_and_parts_of_a_state_dict_are_read(folder):
    """DataParallel and torch.compile write a word before every name; large models come in parts with an index."""
    scope = {"__name__": "net"}
    exec(BUILDER, scope)
    path, state = folder / "models/target/m.safetensors", scope["Net"](5, 6, 3).state_dict()
    about = {"name": "arrays", "path": "numbers.npz"}, {"name": "net", "file": "net.py", "width": 6}, 0

    def logits() -> np.ndarray:
        assert external_models.check([(files(), "target")], *about) == 1
        return external_models.answered(files(), "target", *about)[2].logits

    save_file(state, path)
    expected = logits()
    for prefix in ("module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."):
        save_file({f"{prefix}{name}": value for name, value in state.items()}, path)
        np.testing.assert_array_equal(logits(), expected)
    path.unlink()
    parts = folder / "models/target/m"
    parts.mkdir()
    names = {name: f"model-{number:05}-of-00002.safetensors" for number, name in enumerate(sorted(state)[:2], 1)}
    names = {name: names.get(name, "model-00002-of-00002.safetensors") for name in state}
    for file in {*names.values()}:
        save_file({name: state[name] for name in names if names[name] == file}, parts / file)
    (parts / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    np.testing.assert_array_equal(logits(), expected)


STUDY = {
    "study": "own",
    "scenarios": {
        "mine": {
            "protocol": {
                "name": "external", "path": "models", "data": {"name": "arrays", "path": "numbers.npz"},
                "model": {"name": "net", "file": "net.py", "width": 6},
            },
            "methods": ["one", "two"], "attacks": ["confidence"],
        }
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "builder", [BUILDER, BUILDER.replace("    return Net", "    nn.Linear(2, 2).weight.sum().item()\n    return Net")]
)
def test_state_dicts_that_do_not_fit_are_named_before_a_run(folder, builder):
    scope = {"__name__": "net"}
    exec(BUILDER, scope)
    (folder / "net.py").write_text(builder)
    (folder / "models/target").rmdir()
    for method in ("one", "two"):
        (folder / f"models/{method}/target").mkdir(parents=True)
        for number in range(2):
            save_file(scope["Net"](5, 6, 3).state_dict(), folder / f"models/{method}/target/m{number}.safetensors")

    def checked():
        trial.checkpoints(plan.make(reading.read(STUDY)))

    checked()
    save_file(scope["Net"](5, 7, 3).state_dict(), folder / "models/two/target/m1.safetensors")
    shapes = "tensor 'first.weight' has shape [7, 5], the model's has [6, 5]"
    sentence = f"protocol.path: models/two/target/m1.safetensors: {shapes}"
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        checked()
    assert str(error.value) == f"scenarios.mine.{sentence}"
    (folder / "models/two/target/m1.safetensors").unlink()
    checked()
    np.save("models/train.npy", np.arange(SAMPLES + 1) < 12)
    with pytest.raises(ValueError, match=r"mine\.protocol\.path: models/train\.npy: train has shape \[25\]"):
        checked()


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


@pytest.mark.parametrize("names", [(FIRST,), (AGAIN,), (FIRST, AGAIN)], ids=["first", "second", "both"])
def test_weights_that_are_tied_may_stand_by_one_of_their_names(folder, names):
    scope = {"__name__": "tied"}
    exec(TIED, scope)
    (folder / "tied.py").write_text(TIED)
    torch.manual_seed(0)
    saved = scope["build"](None, (TOKENS,), 2).eval()
    saved.save_pretrained(folder / "whole")
    path, state = folder / "models/target/m.safetensors", load_file(folder / "whole/model.safetensors")
    assert {FIRST, AGAIN} & set(state) == {FIRST}  # as transformers writes it
    tied = state.pop(FIRST)
    given = {"name": "arrays", "path": "texts.npz", "classes": 2}, {"name": "tied", "file": "tied.py"}, 0
    save_file(state | {name: tied.clone() for name in names}, path)
    data, _, answers = external_models.answered(files(), "target", *given)
    with torch.no_grad():
        expected = saved(torch.from_numpy(data.x).long())
    np.testing.assert_allclose(answers.logits[0], expected, atol=1e-5)
    assert external_models.check([(files(), "target")], *given) == 1
    save_file(state, path)
    with pytest.raises(ValueError, match=rf"m\.safetensors: lacks {AGAIN}, {FIRST}; is it a state dict of"):
        external_models.answered(files(), "target", *given)
    save_file(state | {FIRST: tied, AGAIN: tied + 1}, path)
    with pytest.raises(ValueError, match=rf"tensors '{FIRST}' and '{AGAIN}' are one tensor of the model, but differ"):
        external_models.answered(files(), "target", *given)
