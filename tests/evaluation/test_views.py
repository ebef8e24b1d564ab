"""Views are variants of samples: what is wrong with them is told, and those of a sample come in their order."""

import numpy as np
import pytest
from unlearning_audit.evaluation import views
from unlearning_audit.evaluation.arrays import Data

PART, PARENT, VIEW = np.array([0, 1, 2, 2, 2]), np.array([-1, -1, 0, 1, 0]), np.array([0, 0, 1, 4, 1])
WHOLE = "must hold one whole number for each of 5 rows"


@pytest.mark.parametrize(
    ("parent", "view", "problem"),
    [
        (None, None, ""), (PARENT, VIEW, ""), (PARENT, None, "belong together"),
        (PARENT[:4], VIEW, WHOLE), (PARENT, VIEW[:4], WHOLE), (PARENT.astype(np.uint8), VIEW, WHOLE),
        (np.array([-1, 0, 0, 1, 0]), VIEW, "exactly where part is 2"),
        (np.array([-1, -1, 0, 1, -1]), VIEW, "exactly where part is 2"),
        (PARENT, np.array([0, 1, 1, 4, 1]), "exactly where part is 2"),
        (PARENT, np.array([0, 0, 1, 4, 0]), "exactly where part is 2"),
        (np.array([-1, -1, 0, 5, 0]), VIEW, "must name rows that are no views themselves"),
        (np.array([-1, -1, 0, 2, 0]), VIEW, "must name rows that are no views themselves"),
        (PARENT, np.array([0, 0, 1, 6, 1]), "view has values above 5"),
    ],
)  # fmt: skip
def test_views_name_their_parents(parent, view, problem):
    message = views.problem(PART, parent, view)
    assert problem in message if problem else message == ""


def test_views_of_a_sample_come_in_their_order():
    parent, view = np.array([2, -1, -1, 1, 2, 1, 2]), np.array([1, 0, 0, 1, 1, 3, 1])
    expected = [[-1] * 3, [3, -1, -1], [0, 4, 6], *[[-1] * 3] * 4]
    data = Data(*[np.zeros(7, int)] * 5, 2, parent=parent, view=view)
    assert data.views("paraphrase").tolist() == expected
    assert data.views("refusal").tolist() == [[-1], [5], *[[-1]] * 5]
    assert [of.views("perturbed").shape for of in (data, Data(*[np.zeros(7, int)] * 5, 2))] == [(7, 0)] * 2
