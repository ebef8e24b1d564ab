"""What a trial of a user's file finds: models that answer probabilities, data that change, methods that return text."""

import pytest
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
