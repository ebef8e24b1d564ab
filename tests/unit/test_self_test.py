"""The self-test of a card, on the pretended one: everything agrees there, and a fault in the engine is seen."""

import json

import pytest
import torch
from unlearning_audit.bank import card, lanes
from unlearning_audit.command import gpu
from unlearning_audit.workflow import self_test

from pretended_card import pretended


@pytest.fixture
def few(monkeypatch):
    """The self-test with two methods and a small convolution: pretending takes a hundred times as long as computing."""
    monkeypatch.setattr(self_test, "methods", lambda: ["finetune", "scrub"])
    monkeypatch.setitem(self_test.NETWORKS, "ResNet-8", ("cnn", {"channels": (3,)}))


def checks():
    lines = []
    with pretended():
        self_test.run("cuda", lines.append, speed=False)
    return lines


def test_all_methods_are_compared_but_the_adapter_of_users_files():
    assert {"scrub", "salun", "npo", "retrain"} <= set(self_test.methods())
    assert "classic" not in self_test.methods()


def test_an_engine_that_is_right_passes(few):
    lines = checks()
    assert len(lines) == 7
    assert [line.name for line in lines if line.passed is not True] == []


def test_a_fault_is_seen_and_ends_nothing(few, monkeypatch):
    def forgets_the_rate(self, step, rate):
        advance(self, step, 2 * rate)

    advance = lanes.Lane.advance
    monkeypatch.setattr(lanes.Lane, "advance", forgets_the_rate)
    failed = {line.name for line in checks() if line.passed is False}
    assert {"perceptron, sgd, recorded", "ResNet-8, adamw, recorded"} <= failed
    monkeypatch.setattr(lanes.Lane, "advance", None)
    assert all("TypeError: 'NoneType'" in line.result for line in checks() if "recorded" in line.name)


def test_the_command_prints_every_check_and_writes_them(few, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    facts = {"name": "A card", "capability": "9.0", "memory_mib": 81559, "cuda": "13.0", "cudnn": 91002}
    monkeypatch.setattr(card, "use", lambda: "cuda")
    monkeypatch.setattr(card, "describe", lambda: facts)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1 << 33, 1 << 34))
    for passed, code in ((True, 0), (None, 0), (False, 1)):
        check = self_test.Check("a check", passed, "a result", 1.25)
        monkeypatch.setattr(self_test, "run", lambda device, say, check=check: say(check) or [check])
        assert gpu.run() == code
        printed = capsys.readouterr().out.splitlines()
        assert printed[0] == "A card, compute capability 9.0, 81,559 MiB, CUDA 13.0, cuDNN 91002"
        assert printed[1] == f"{'✓' if passed else '·' if passed is None else '✗'} a check: a result (1.2 s)"
        assert printed[2].startswith(f"1 checks, {code} failed. gpu.json holds all of it")
    written = json.loads((tmp_path / "gpu.json").read_text())
    assert written["checks"] == [{"name": "a check", "passed": False, "result": "a result", "seconds": 1.25}]
    assert written["card"] == facts
    assert written["free_mib"] == 8192


def test_without_a_card_the_command_says_so(monkeypatch):
    monkeypatch.setenv("UNLEARNING_DEVICE", "cpu")
    with pytest.raises(ValueError, match=r"^no GPU is visible here"):
        gpu.run()
