"""What a study may not ask of a table of rankings."""

import pytest
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError

from plan_cases import BASE, changed


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [({"metric": ["q", "auc"]}, "tables.quality: metric must be one, or left out, with the layout rankings"),
     ({"footer": ["accuracy"]}, "tables.quality: footer must be one, or left out, with the layout rankings")],
)  # fmt: skip
def test_what_has_no_ranking_is_refused(fields, sentence):
    wish = {"title": "Agreement", "metric": "q", "scenarios": ["main"], "layout": "rankings"}
    with pytest.raises(StudyError) as refusal:
        reading.read(changed(BASE, {"tables/quality": wish | fields}))
    assert sentence in str(refusal.value)
