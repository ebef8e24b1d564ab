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

METRICS = {"records": {"rate": 0.1}, "blind": {"shuffles": 40}}
STUDY = changed(config(attacks=("confidence", "random"), bootstrap=100), {"scenarios/audit/metrics": METRICS})
OPTION = {"scenarios/audit/metrics/records/rate": 0.2}


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

    seen(scoring, "score_by_shadows", 1)
    seen(measuring, "evaluate", 0)

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


def test_a_change_computes_what_it_concerns_and_the_numbers_are_those_of_all_anew(computed):
    first, _ = computed(STUDY)
    study = changed(STUDY, {"scenarios/audit/attacks": ["confidence", "random", "entropy"]})
    of_attack, _ = computed(study)
    of_option, files = computed(changed(study, OPTION))
    every, anew = computed(changed(study, OPTION), "another")
    assert (every - first, every - of_attack, of_option) == ({"entropy"}, {"confidence", "random"}, {"records"})
    assert {"records", "swap"} < of_attack
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
    again, files = computed(changed(study, OPTION))
    assert again == {"records"}, "the file runs in a process of its own"
    assert tables.read_failures(files["scores"])["odd"].endswith("ValueError: odd")
