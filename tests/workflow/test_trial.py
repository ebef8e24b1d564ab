"""What a trial of a user's file finds: models that answer probabilities, data that change, methods that return text."""

import os
import subprocess
import sys

import pytest
from unlearning_audit import ROOT
from unlearning_audit.workflow import trial

DATA = """
import numpy as np
from unlearning_audit.data import Source
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    "None."


def load(options, root):
    rng = np.random.default_rng({seed})
    y = rng.integers(3, size=60)
    return Source({x}.astype(np.float32), y.astype(np.int64), np.zeros(60, np.uint8), 3)
"""


#: Tries the files that it is given; what is said of each, in a line.
TRIALS = """
import sys
from unlearning_audit.workflow import trial

for path in sys.argv[1:]:
    try:
        print(*trial.attempt(path).splitlines())
    except ValueError as error:
        print(error)
"""


def tried_by_themselves(folder, **texts):
    """What is said of each file, in a process that has computed no gradient yet, after which torch refuses to compute
    any in a fork."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    run = subprocess.run(
        [sys.executable, "-c", TRIALS, *(f"{name}.py" for name in texts)], cwd=folder, text=True, check=True,
        capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return run.stdout.splitlines()


@pytest.mark.parametrize(
    ("seed", "x", "problem"),
    [
        ("", "rng.normal(size=(60, 8))", r"load returned other samples when it was called again.*default_rng\(0\)"),
        (0, "255 * rng.random((60, 1, 4, 4))", r"mine\.py: images in float32 must lie between 0 and 1, but range fr"),
    ],
)
def test_data_that_change_from_call_to_call_or_are_far_too_bright_are_refused(tmp_path, seed, x, problem):
    path = tmp_path / "mine.py"
    path.write_text(DATA.format(seed=0, x="rng.normal(size=(60, 8))"))
    assert "runs correctly" in trial.attempt(str(path))
    path.write_text(DATA.format(seed=seed, x=x))
    with pytest.raises(ValueError, match=problem):
        trial.attempt(str(path))


#: Descent on what is kept alone, from new weights; exchanged, the model learns what it was to forget.
DESCENT = """import torch


def unlearn(model, kept, gone):
    [layer.reset_parameters() for layer in model.modules() if hasattr(layer, 'reset_parameters')]
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for x, y in [batch for _ in range(60) for batch in kept]:
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
"""


@pytest.mark.parametrize(("give", "said"), [({}, False), ({"kept": "forget_loader", "gone": "retain_loader"}, True)])
def test_samples_that_were_exchanged_are_asked_about(tmp_path, give, said):
    (tmp_path / "mine.py").write_text(DESCENT)
    text = trial.attempt(str(tmp_path / "mine.py"), fields={"give": {"gone": "forget_loader", **give}})
    assert ("were forget and retain exchanged?" in text) == said


def test_models_that_differ_are_not_chosen_by_their_order(tmp_path):
    method = "from copy import deepcopy\n\n\ndef unlearn(model, retain, forget):\n    other = deepcopy(model)\n{}\n"
    texts = {
        "differ": "    list(model.parameters())[0].data.zero_()\n    return other, model",
        "equal": "    return model, other",
        "losses": "    return model, {'loss': list(model.parameters())[0].sum().detach()}",
    }
    lines = tried_by_themselves(tmp_path, **{name: method.format(text) for name, text in texts.items()})
    sentence = "it returned 2 different models; return only the one that forgot"
    assert [sentence in line for line in lines] == [True, False, False]
