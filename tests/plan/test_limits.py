"""Studies without bounds are refused by name and number before anything of them is planned."""

import pytest
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError
from unlearning_audit.workflow import plan

from plan_cases import BASE, changed


def planned(**edits):
    return plan.make(reading.read(changed(BASE, {path.replace("__", "/"): value for path, value in edits.items()})))


@pytest.mark.parametrize("batch", [2, 10**8])
def test_a_study_of_endless_pairs_says_how_large_it_would_be(batch):
    message = r"^scenarios\.main: the study would have up to [\d,]+ jobs and [\d,]{10,} models trained or unlearned"
    with pytest.raises(ValueError, match=message):
        planned(defaults__protocol__pairs=10**7, batch=batch)


@pytest.mark.parametrize("field", ["models_per_split", "shadow_models_per_split"])
def test_endless_models_in_few_jobs_are_refused(field):
    with pytest.raises(ValueError, match=r"^scenarios\.main: .* and [\d,]{10,} models trained or unlearned"):
        planned(**{f"defaults__protocol__{field}": 10**9})


PROTOCOL = """from unlearning_audit.plugins.declarations import Protocol
from unlearning_audit.plugins.settings import Settings

PROTOCOL = Protocol()


class Options(Settings):
    pass


def blocks(options):
    return {"pairs": 3}


def models(options):
    return MODELS


def draw(block, population, data, options, seed):
    raise NotImplementedError
"""


def plan_with_protocol(tmp_path, models, protocol=PROTOCOL):
    (tmp_path / "mine.py").write_text(protocol.replace("MODELS", models))
    choice = {"name": "mine", "file": str(tmp_path / "mine.py")}
    return planned(defaults__protocol=choice, defaults__attacks={}, tables={}, figures={}, defaults__controls=False)


def test_models_of_an_own_protocol_are_counted_as_it_says(tmp_path):
    assert plan_with_protocol(tmp_path, "7").models == 3 * 7 * 4  # as trained and by three methods
    assert plan_with_protocol(tmp_path, "0").models == 0


def test_axes_that_multiply_without_end_are_refused():
    axes = {"recipe.lr": [i / 1000 for i in range(1, 301)], "seedless": {f"s{i}": {} for i in range(300)}}
    with pytest.raises(StudyError, match=r"scenarios\.main\.vary: gives 90,000 combinations, more than limit"):
        planned(scenarios__main__vary=axes)


@pytest.mark.parametrize("place", ["recipe", "methods__finetune"])
@pytest.mark.parametrize(("field", "most"), [("epochs", 100_000), ("lr", 1_000)])
def test_implausible_training_is_refused(place, field, most):
    of = place.replace("__", r"\.")
    with pytest.raises(StudyError, match=rf"{of}\.{field}: must be at most {most}, found 1000000000"):
        planned(**{f"defaults__{place}__{field}": 10**9})
