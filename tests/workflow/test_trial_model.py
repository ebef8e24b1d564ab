"""A user's own model or method is tried before anything is made; a fault is one sentence."""

import multiprocessing
import os
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unlearning_audit.workflow import trial

FILE = """from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    pass


def build({arguments}):
    from torch import nn

    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(64, classes)
            self.head = {head}

        def forward(self, x):
            return {answer}

    return {model}
"""
WHOLE = {"arguments": "options, shape, classes", "head": '"last"', "answer": "self.last(x)", "model": "Mine()"}
UNTOLD = "outputs, which does not identify the last layer; set model.head to its name, such as model.head ="
WANTED = "for float32 [2, 64] the model must return logits, float [2, 10]"


def attempt(folder: Path, seconds: float = 0.0, **fields: Any) -> str:
    """``seconds`` 0: of one epoch."""
    import unlearning_audit.workflow.open_stack  # noqa: F401 (so that it is there in every fork)

    os.chdir(folder)
    trial.SECONDS = seconds
    return trial.attempt("mine.py", fields=fields)


def built(model: str) -> str:
    """The name of a model's final layer, which is the head of its stack."""
    from torch import nn
    from unlearning_audit.training.stack import ModelStack
    from unlearning_audit.workflow.open_stack import check_built

    x, y = np.zeros((4, 64), np.float32), np.zeros(4, np.int64)
    stack = ModelStack.create(lambda: check_built(eval(model, {"nn": nn}), 10, "mine.py"), x, y, [0, 1])
    assert stack.head == [name for name in stack.parameters if name.startswith(f"{stack.final_layer}.")]
    assert (stack.parameters[f"{stack.final_layer}.weight"].shape[:2], stack.logits().shape) == ((2, 10), (2, 4, 10))
    return stack.final_layer


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    """A process that has trained nothing: with threads of autograd, as on a machine with a card, no fork can train."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNLEARNING_DEVICE", "cpu")
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
            yield executor


@pytest.fixture
def tried(workdir, process):
    """Tries a model file of the given parts."""

    def tried(**parts: str) -> str:
        Path("mine.py").write_text(FILE.format(**{**WHOLE, **parts}))
        return process.submit(attempt, workdir).result()

    return tried


def test_a_sound_model_is_tried_and_nothing_is_left_behind(tried):
    for answer in ("self.last(x)", "self.last(x).log_softmax(-1)"):
        assert tried(answer=answer).startswith("mine.py runs correctly: 650 weights, last layer 'last'.")
    assert [path.name for path in Path().iterdir()] == ["mine.py"]


@pytest.mark.parametrize(
    ("model", "head"),
    [
        ("nn.Linear(64, 10)", "0"),
        ("nn.Sequential(nn.Linear(64, 12), nn.BatchNorm1d(12), nn.Linear(12, 10, bias=False))", "2"),
        ("nn.Sequential(nn.Unflatten(1, (64, 1)), nn.Conv1d(64, 10, 1), nn.Flatten())", "1"),
    ],
)
def test_the_final_layer_is_the_one_with_as_many_outputs_as_there_are_classes(process, model, head):
    assert process.submit(built, model).result() == head


@pytest.mark.parametrize(
    ("part", "wrong", "sentence"),
    [
        ("head", '"fc"', "model.head is 'fc', which is not a layer of the model"),
        ("head", "nn.Linear(64, classes)", f"last, head each have 10 {UNTOLD} 'head'"),
        ("model", "nn.Sequential(nn.Linear(64, 9))", f"no linear or convolutional layer has 10 {UNTOLD} 'fc'"),
        ("model", "Mine", "build must return a torch.nn.Module, it returned type"),
        ("answer", "[][3]", f"line 18, in forward: IndexError: list index out of range ({WANTED})"),
        ("answer", "self.last(x)[:, :5]", f"{WANTED}; it returned Tensor of torch.float32 with shape (2, 5)"),
        ("answer", "{'logits': self.last(x)}", f"{WANTED}; it returned dict"),
        (
            "answer",
            "self.last(x).softmax(-1)",
            "the model returns probabilities (at least 0, with sum 1) instead of "
            "logits; forward must return the input of softmax",
        ),
    ],
)
def test_what_is_wrong_with_a_model_is_said_with_file_and_expectation(tried, part, wrong, sentence):
    with pytest.raises(ValueError, match=r"^mine\.py") as error:
        tried(**{part: wrong})
    assert re.sub(r"^mine\.py:? ", "", str(error.value)) == sentence


def test_a_model_that_cannot_be_trained_is_told_before_training(tried):
    with pytest.raises(ValueError, match=r"^mine\.py[^\n]*$"):
        tried(answer="self.last(x).detach()")


#: Descent on what is kept alone, from new weights; exchanged, the model learns what it was to forget.
DESCENT = """import torch


def unlearn(model, kept, gone):
    [layer.reset_parameters() for layer in model.modules() if hasattr(layer, 'reset_parameters')]
    for x, y in [batch for _ in range(60) for batch in kept]:
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            [weight.sub_(weight.grad, alpha=0.5) for weight in model.parameters()]
"""


@pytest.mark.parametrize(("give", "said"), [({}, False), ({"kept": "forget_loader", "gone": "retain_loader"}, True)])
def test_samples_that_were_exchanged_are_asked_about(tmp_path, process, give, said):
    (tmp_path / "mine.py").write_text(DESCENT)
    text = process.submit(attempt, tmp_path, 20.0, give={"gone": "forget_loader", **give}).result()
    assert ("were forget and retain exchanged?" in text) == said
