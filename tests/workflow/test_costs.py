"""What jobs will take is told by those of their stage."""

import pytest
from unlearning_audit.store.files import write_spec
from unlearning_audit.workflow import costs
from unlearning_audit.workflow.progress import RATES


def specs(root, **nodes):
    return [str(root / stage / f"{label}-{i:010x}" / "spec.json") for stage, labels in nodes.items()
            for i, label in enumerate(labels)]  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "took", "expected"),
    [
        ({"unlearn": ["ssd", "ssd", "scrub", "scrub"]}, {0: 1.0, 2: 9.0}, [1.0, 5.0, 9.0, 5.0]),
        # a network that takes hours to train does not make its logits slow to attack
        ({"train": ["a"], "unlearn": ["a-npo"], "metrics": ["a"]}, {0: 3000.0},
         [3000.0, 3000.0 * RATES["unlearn"] / RATES["train"], RATES["metrics"]]),
        # retraining is training, and says nothing of other methods
        ({"train": ["a-pairs0"], "unlearn": ["a-pairs0-retrain", "a-pairs0-npo", "a-pairs0-ssd"]},
         {0: 100.0, 2: 3.0}, [100.0, 100.0, 3.0, 3.0]),
    ],
)  # fmt: skip
def test_a_job_takes_what_those_of_its_stage_took(tmp_path, nodes, took, expected):
    paths = specs(tmp_path, **nodes)
    for i, seconds in took.items():
        write_spec(paths[i], {"seconds": {"function": seconds}})
    done = costs.measured(paths)
    assert done == {paths[i]: seconds for i, seconds in took.items()}
    by_path = costs.expected(paths, done)
    assert [by_path[path] for path in paths] == pytest.approx(expected)


def test_data_and_splits_do_not_tell_how_long_models_take(tmp_path):
    data, splits, train, metrics = paths = specs(tmp_path, data=["a"], splits=["a"], train=["a"], metrics=["a"])
    assert not costs.finished_suffice(paths, {data: 1.0, splits: 1.0})
    assert costs.finished_suffice(paths, {data: 1.0, train: 1.0})
    assert not costs.finished_suffice([data, metrics], {})
    assert costs.finished_suffice([data, metrics], {data: 1.0}), "a study without models"
