"""What an attack or a metric said of the same models is taken from the files in which it stands."""

from pathlib import Path

import pytest
from unlearning_audit.evaluation import effects, measuring, records, rows, scoring
from unlearning_audit.stages import here
from unlearning_audit.store import tables
from unlearning_audit.study import reading
from unlearning_audit.workflow import plan

from external_cases import config, world
from plan_cases import changed

STUDY = changed(config(attacks=("confidence", "random")), {"scenarios/audit/metrics": {"records": {"rate": 0.1}}})


@pytest.fixture
def computed(tmp_path, monkeypatch):
    """Makes a study in a folder and says which attacks and metrics were computed for it, and where they stand."""
    asked = []

    def seen(module, name, at):
        real = getattr(module, name)

        def wrapper(*arguments):
            asked.append(arguments[at])
            return real(*arguments)

        monkeypatch.setattr(module, name, wrapper)

    seen(scoring, "scored", 1)
    seen(measuring, "evaluated", 0)

    def make(study, folder="place"):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        monkeypatch.chdir(place)
        if not Path("logits").exists():
            world("logits")
        asked.clear()
        whole = plan.make(reading.read(study, "own.yaml"))
        here.judge(whole)
        node = next(node for node in whole.nodes["metrics"].values() if "mine" in node.name)
        return set(asked), {name: place / path for name, path in node.outputs.items()}

    return make


def content(files):
    """All numbers of one method."""
    return {
        "scores": {of: {k: v.tolist() for k, v in columns.items()}
                   for of, columns in tables.read_scores(files["scores"]).items()},
        "rows": list(map(repr, rows.read(files["metrics"]))),
        "records": list(map(repr, records.read(files["records"]))),
        "effects": {name: repr({k: v.tolist() if hasattr(v, "tolist") else v for k, v in vars(part).items()})
                          for name, part in effects.read(files["effects"]).items()},
    }  # fmt: skip


EDITS = {
    "option": ({"scenarios/audit/metrics/records/rate": 0.2}, {"records"}),
    "attack": ({"scenarios/audit/attacks": ["confidence", "random", "entropy"]}, {"entropy", "every metric"}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_change_computes_what_it_concerns_and_the_numbers_are_those_of_all_anew(computed, edit):
    edits, expected = EDITS[edit]
    first, _ = computed(STUDY)
    assert {"confidence", "random", "records", "swap"} < first
    again, files = computed(changed(STUDY, edits))
    every, anew = computed(changed(STUDY, edits), "another")
    if "every metric" in expected:
        expected = expected - {"every metric"} | (every - {"confidence", "random"})
    assert again == expected
    assert every > again
    assert content(files) == content(anew)


def test_what_failed_is_tried_again(computed, tmp_path):
    attack = tmp_path / "odd.py"
    attack.write_text(
        "from unlearning_audit.plugins.settings import Settings\n\n\nclass Options(Settings):\n    pass\n\n\n"
        "def score(logits, y, shadow, options, rng):\n    raise ValueError('odd')\n"
    )
    attacks = {"odd": {"file": str(attack)}, "confidence": {}}
    study = changed(STUDY, {"scenarios/audit/attacks": attacks})
    computed(study)
    again, files = computed(changed(study, EDITS["option"][0]))
    assert again == {"records"}, "the file runs in a process of its own"
    assert tables.read_failures(files["scores"])["odd"].endswith("ValueError: odd")
