"""Models that tests of methods share."""

import pytest
import torch

from stack_cases import SEEDS, trained


@pytest.fixture(scope="module")
def stack():
    return trained(seeds=SEEDS[:2], dtype=torch.float64)
