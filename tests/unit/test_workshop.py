"""Determinism is on request, and a request is obeyed."""

import os
import subprocess
import sys

import pytest

from unlearning.plugins import source

ASK = """
from unlearning.workflow import open_bank
import torch
print(open_bank.device(), torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark)
"""


@pytest.mark.parametrize(("asked", "told"), [("1", "True False"), ("0", "False True")])
def test_determinism_is_on_request(asked, told):
    env = {**os.environ, "PYTHONPATH": str(source.SCRIPTS), "UNLEARNING_DETERMINISTIC": asked}
    env.pop("UNLEARNING_DEVICE", None)
    run = subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.split(maxsplit=1)[1].strip() == told
