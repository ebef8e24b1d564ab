"""Studies without bounds are refused by name and number before anything of them is planned."""

import pytest
from unlearning_audit.study.messages import StudyError

from plan_cases import BASE, changed, planned


@pytest.mark.parametrize(
    ("field", "value", "batch", "said"),
    [
        ("pairs", 10**7, 2, r"the study would have up to [\d,]+ jobs"),
        ("pairs", 10**7, 10**8, r"the study would have up to [\d,]+ jobs"),
        ("shadow_models_per_split", 10**9, 2, ".*"),
    ],
)
def test_a_study_of_endless_pairs_or_models_says_how_large_it_would_be(field, value, batch, said):
    with pytest.raises(ValueError, match=rf"^scenarios\.main: {said} and [\d,]{{10,}} models trained or unlearned"):
        planned(changed(BASE, {f"defaults/protocol/{field}": value, "batch": batch}))


def test_axes_that_multiply_without_end_are_refused():
    axes = {"recipe.lr": [i / 1000 for i in range(1, 301)], "seedless": {f"s{i}": {} for i in range(300)}}
    with pytest.raises(StudyError, match=r"scenarios\.main\.vary: gives 90,000 combinations, more than limit"):
        planned(changed(BASE, {"scenarios/main/vary": axes}))
