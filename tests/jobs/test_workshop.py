"""Determinism is on request, and a request is obeyed."""

import os
import subprocess
import sys

import pytest
from unlearning_audit.plugins import source

pytestmark = pytest.mark.slow

ASK = """
from unlearning_audit.training import card
import torch
card.choose_kernels()
print(torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark)
"""


@pytest.mark.parametrize(("setting", "expected"), [("1", "True False"), ("0", "False True")])
def test_determinism_is_on_request(setting, expected):
    env = {**os.environ, "PYTHONPATH": str(source.SCRIPTS), "UNLEARNING_DETERMINISTIC": setting}
    run = subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == expected
