"""Studies without bounds are refused by name and number before anything of them is planned."""

import pytest
from unlearning_audit.study.messages import StudyError

from plan_cases import BASE, changed, planned


@pytest.mark.parametrize(
    ("field", "value", "batch", "said"),
    [
        ("pairs", 10**7, 2, r"the study would have up to [\d,]+ jobs"),
        ("pairs", 10**7, 10**8, r"the study would have up to [\d,]+ jobs"),
        ("models_per_split", 10**9, 2, ".*"),
        ("shadow_models_per_split", 10**9, 2, ".*"),
    ],
)
def test_a_study_of_endless_pairs_or_models_says_how_large_it_would_be(field, value, batch, said):
    with pytest.raises(ValueError, match=rf"^scenarios\.main: {said} and [\d,]{{10,}} models trained or unlearned"):
        planned(changed(BASE, {f"defaults/protocol/{field}": value, "batch": batch}))


PROTOCOL = """from unlearning_audit.plugins.declarations import Protocol
from unlearning_audit.plugins.settings import Settings

PROTOCOL = Protocol()


class Options(Settings):
    pass


def blocks(options):
    return {{"pairs": 3}}


def models(options):
    return {}


def draw(block, population, data, options, seed):
    raise NotImplementedError
"""


@pytest.mark.parametrize("models", [7, 0])
def test_models_of_an_own_protocol_are_counted_as_it_says(tmp_path, models):
    (tmp_path / "mine.py").write_text(PROTOCOL.format(models))
    edits = {"protocol": {"name": "mine", "file": str(tmp_path / "mine.py")}, "attacks": {}, "controls": False}
    study = {f"defaults/{name}": value for name, value in edits.items()} | {"tables": {}, "figures": {}}
    assert planned(changed(BASE, study)).models == 3 * models * 4  # as trained and by three methods


def test_axes_that_multiply_without_end_are_refused():
    axes = {"recipe.lr": [i / 1000 for i in range(1, 301)], "seedless": {f"s{i}": {} for i in range(300)}}
    with pytest.raises(StudyError, match=r"scenarios\.main\.vary: gives 90,000 combinations, more than limit"):
        planned(changed(BASE, {"scenarios/main/vary": axes}))
