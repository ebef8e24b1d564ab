"""What a method is given in a sequence of requests."""

from pathlib import Path

from safetensors.numpy import load_file
from unlearning_audit.evaluation.arrays import Membership

from plan_cases import SEQUENCE, changed, nodes_of_requests, planned
from stage_runs import make

COUNTING = '''
"""Add the number of samples to forget to every weight, and 1000 times that of samples to keep."""
from unlearning_audit.plugins.settings import Settings


class Options(Settings):
    """Nothing to choose."""


def unlearn(stack, forget, retain, options):
    stack.edit(lambda name, value: value + forget.index.shape[1] + 1000 * retain.index.shape[1])
'''


def test_a_method_is_given_the_newest_request_and_what_is_to_be_kept_then(workdir):
    Path("counting.py").write_text(COUNTING)
    plan = planned(changed(SEQUENCE, {
        "defaults/methods": {"none": {}, "counting": {"file": "counting.py"}}, "defaults/recipe/epochs": 1,
        "defaults/protocol/pairs": 1, "defaults/data/label_noise": 0.0,
    }))  # fmt: skip

    def weights(node):
        make(node)
        return next(iter(load_file(node.outputs["models"]).values()))

    (train,) = plan.nodes["train"].values()
    before = [weights(train)]
    splits = Membership.read(next(iter(plan.nodes["splits"].values())).outputs["membership"])
    forgotten, kept = (int(mask[0].sum()) for mask in (splits.forget, splits.train))
    answers = zip(nodes_of_requests(plan, "counting"), nodes_of_requests(plan, "counting_at_once"), strict=True)
    for request, (chain, together) in enumerate(answers, start=1):
        retained = 1000 * (kept - request * forgotten)
        before.append(weights(chain))
        assert round(float((before[-1] - before[-2]).mean())) == forgotten + retained
        assert round(float((weights(together) - before[0]).mean())) == request * forgotten + retained
