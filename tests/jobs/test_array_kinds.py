"""What people pass for arrays: tensors of any kind, lists of them, and what a model returns."""

import numpy as np
import pytest
import torch
from unlearning_audit.command.arrays import _array

LOGITS = torch.randn(2, 5, 3)


@pytest.mark.parametrize(
    "value",
    [LOGITS, LOGITS.bfloat16(), LOGITS.half(), LOGITS.clone().requires_grad_(), list(LOGITS), LOGITS.tolist(),
     [one.clone().requires_grad_() for one in LOGITS]],
)  # fmt: skip
def test_tensors_of_every_kind_are_arrays(value):
    array = _array(value, "target")
    assert array.shape == (2, 5, 3)
    np.testing.assert_allclose(array, LOGITS.numpy(), atol=0.02)


@pytest.mark.parametrize("value", [{"logits": LOGITS}, (LOGITS, torch.zeros(2, 7))])
def test_what_a_model_returns_is_refused_with_what_to_take_of_it(value):
    with pytest.raises(ValueError, match=r"target must be an array of logits.*of a model's output, give only the log"):
        _array(value, "target")
