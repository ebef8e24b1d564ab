"""Logits that are none, in one study beside sound ones: each is told by its name, in the terminal and on the page."""

import numpy as np
import pytest
from unlearning_audit.evaluation.rows import Failure, read_union

from external_cases import save, world

pytestmark = pytest.mark.slow

NOISE = np.random.default_rng(7)


def softmax(logits):
    odds = np.exp(logits - logits.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


def partly(logits, change, number):
    changed = logits.copy()
    changed[:number] = change(logits[:number])
    return changed


def twins(logits):
    changed = logits.copy()
    changed[1::2] = changed[::2] + 1e-6 * NOISE.normal(size=changed[::2].shape)
    return changed


#: Refused: what is saved for the logits of a method → a part of the sentence.
REFUSED = {
    "rounded": (lambda x: softmax(x).round(2), "holds probabilities that sum to"),
    "noisy": (lambda x: softmax(x) + 0.003 * NOISE.normal(size=x.shape), "holds probabilities that sum to"),
    "half": (lambda x: partly(x, softmax, 4), "in 4 of 8 models (0, 1, 2, 3)"),
    "single": (lambda x: partly(x, softmax, 1), "in 1 of 8 models (0)"),
    "added": (lambda x: softmax(x) + 0.01, "holds probabilities that sum to"),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), "values between 0 and 1 only"),
    "losses": (lambda x: -np.log(softmax(x)), "holds losses, negated logarithms"),
    "negative": (lambda x: -x, "have the wrong sign"),
    "shifted": (lambda x: np.roll(x, 1, axis=-1), "labels numbers the classes otherwise than the columns"),
}
#: Doubted: the same.
DOUBTED = {
    "reversed": (lambda x: x[:, ::-1], "in another order than labels"),
    "one_reversed": (
        lambda x: partly(x, lambda of: of[:, ::-1], 1),
        "holds models that answer their retained samples as",
    ),
    "twins": (twins, "holds models twice"),
}
CHANGES = REFUSED | DOUBTED


@pytest.fixture(scope="module")
def place(workplace_of, tmp_path_factory):
    """The study, run, and what the run said."""
    work = workplace_of(tmp_path_factory.mktemp("logits") / "work")
    root = work.folder / "logits"
    methods = ("good", *CHANGES)
    arrays = world(root, methods=methods, trace=(0.5,) * len(methods), pairs=2)
    for name, (change, _) in CHANGES.items():
        sound = arrays[f"{name}/target"][0].astype(np.float64)
        save(root / name / "target", logits=change(sound).astype(np.float32))
    noise = 1e-3 * NOISE.normal(size=arrays["good/target"][0].shape)
    save(root / "retrain_control", logits=arrays["retrain"][0] + noise.astype(np.float32))
    work.write({
        "study": "own", "bootstrap": 100,
        "scenarios": {"audit": {"protocol": {"name": "external", "path": "logits"}, "methods": list(methods),
                                "attacks": ["correctness", "confidence"]}},
    })  # fmt: skip
    return work, work.run(check=False).stdout


@pytest.fixture(scope="module")
def workplace_of(tree):
    from workplace import Workplace

    def make(folder):
        folder.mkdir()
        return Workplace(tree, folder)

    return make


def records(place, method):
    return [record.row for record in read_union(place[0].folder / "results/own/metrics.csv") if record.method == method]


def page(place):
    return (place[0].folder / "results/own/report.html").read_text()


def test_sound_logits_beside_them_have_all_their_numbers(place):
    rows = records(place, "good")
    assert not [row for row in rows if isinstance(row, Failure)]
    assert np.isfinite([row.value for row in rows if row.metric == "auc"]).all()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_none_is_refused_by_name(place, name):
    words = REFUSED[name][1]
    (failure,) = [row for row in records(place, name) if isinstance(row, Failure)]
    assert words in failure.sentence
    assert f"{name}/target" in failure.sentence
    # The terminal has room for some.
    assert (f"scenarios.audit.methods.{name}: {failure.sentence}" in place[1]) == (name in list(REFUSED)[:6])
    assert failure.sentence.replace("<", "&lt;")[:60] in page(place)
    assert {row.metric for row in records(place, name) if not isinstance(row, Failure)} <= {"doubt"}


@pytest.mark.parametrize("name", DOUBTED)
def test_what_is_hard_to_believe_is_doubted_by_name(place, name):
    notes = [row.note for row in records(place, name) if not isinstance(row, Failure) and row.metric == "doubt"]
    (doubt,) = [note for note in notes if DOUBTED[name][1] in note]
    assert doubt.startswith(f"{name}/target ")
    assert doubt[:60] in page(place)


def test_a_yardstick_that_is_nearly_another_is_doubted(place):
    notes = [row.note for row in records(place, "good") if not isinstance(row, Failure) and row.metric == "doubt"]
    assert any("models that are nearly models of retrain (" in note for note in notes)


def test_the_terminal_says_that_something_is_doubted(place):
    (line,) = [line for line in place[1].splitlines() if line.startswith("Doubted: ")]
    assert "scenarios.audit.methods." in line
    assert line.endswith("more under Checks in the report")
