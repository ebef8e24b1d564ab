"""Arrays in memory are audited as the protocol external audits files: same numbers, same page, same sentences."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from unlearning_audit import audit

from external_cases import answers, memberships

RNG = np.random.default_rng(0)
LABELS = RNG.integers(4, size=300)
TRAIN, FORGET = memberships(RNG, samples=300, pairs=2)
#: Forgotten samples are answered as never seen ones by retrained models, surer by the audited, surest before.
MODELS = {
    name: answers(RNG, LABELS, TRAIN & ~FORGET if name == "retrain" else TRAIN, FORGET, memory=2, trace=trace)
    for name, trace in {"target": 1.0, "original": 3.0, "retrain": 0.0, "shadow": 1.0, "shadow_original": 3.0}.items()
}


def test_arrays_become_a_table_verdicts_and_a_page(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = audit(**MODELS, labels=LABELS, forget=FORGET, train=TRAIN, attacks=["confidence", "random"], bootstrap=100)
    rows = found.table.query("metric == 'q' and attack == 'extended' and setting == ''")
    q = dict(zip(rows["method"], rows["value"], strict=True))
    assert q["none"] < q["mine"] < q["retrain"]
    assert list(found.table) == ["method", "attack", "metric", "setting", "value", "ci_low", "ci_high", "n", "note"]
    verdicts = found.verdicts.set_index("method")["verdict"]
    assert set(verdicts.index) == {"none", "mine", "retrain"}
    assert "told" in verdicts["none"]
    page = found.report(tmp_path / "page.html")
    assert "mine" in page.read_text()
    assert found.failures == []
    assert not found.folder.is_relative_to(tmp_path)


def test_an_attack_of_ones_own_that_fails_is_told_and_the_rest_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        '"""Mine."""\n\nfrom unlearning.plugins.settings import Settings\n\n\n'
        'class Options(Settings):\n    """None."""\n\n\n'
        "def score(logits, y, reference, options, rng):\n    raise ArithmeticError('never')\n"
    )
    given = {"target": MODELS["target"], "labels": LABELS, "forget": FORGET, "train": TRAIN, "bootstrap": 100}
    with pytest.warns(UserWarning, match="scenarios.audit.attacks.mine"):
        found = audit(**given, shadow=MODELS["shadow"], attacks={"confidence": None, "mine": {"file": "mine.py"}})
    (failure,) = found.failures
    assert "mine.py line 11, in score: ArithmeticError: never" in failure
    assert found.table.query("attack == 'confidence/trained' and metric == 'auc'")["value"].notna().all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"forget": FORGET[:, :20]}, "forget.npy: forget has shape [8, 20], but must be [8, 300] or [300]"),
        ({"target": [[1.0], [1.0, 2.0]]}, "inhomogeneous"),
        ({"target": np.array([[{}]])}, "logits must be an array of numbers, found a list of unequal parts"),
        ({"target": MODELS["target"][0]}, "for a single model save logits[None]"),
        ({"attacks": ["confidense"]}, "did you mean 'confidence'?"),
        ({"shadow": {"logit": MODELS["shadow"]}}, "shadow: there is no array 'logit', did you mean 'logits'?"),
        ({"train": None}, "train.npy: this file is missing, and so is heldout.npy"),
        ({"method": "My method"}, "scenarios.audit.methods.My method"),
    ],
)
def test_arrays_that_cannot_be_audited_are_refused_before_anything_runs(change, sentence, tmp_path):
    given = {
        "target": MODELS["target"],
        "labels": LABELS,
        "forget": FORGET,
        "train": TRAIN,
        "folder": tmp_path,
    } | change
    with pytest.raises(ValueError) as error:  # noqa: PT011 (the sentence is compared below)
        audit(**given)
    assert sentence in str(error.value)
    assert not (tmp_path / "results").exists()
