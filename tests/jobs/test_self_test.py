"""The self-test of a card, on the pretended one: everything agrees there, and a fault in the engine is seen."""

import pytest
import torch
from unlearning_audit.command import gpu
from unlearning_audit.training import card, lanes, updates
from unlearning_audit.workflow import self_test

from pretended_card import pretended


@pytest.fixture
def small_suite(monkeypatch):
    """The self-test with two methods and a small convolution: pretending takes a hundred times as long as computing."""
    monkeypatch.setattr(self_test, "methods", lambda: ["finetune", "scrub"])
    monkeypatch.setitem(self_test.NETWORKS, "ResNet-8", ("cnn", {"channels": (3,)}))


def checks():
    with pretended():
        return list(self_test.run("cuda"))


def test_an_engine_that_is_right_passes(small_suite):
    assert [line.passed or line.name for line in checks()] == [True] * 6


def test_a_weight_that_is_nan_is_a_gap():
    first, second = (self_test._stack(self_test.NETWORKS["perceptron"], "cpu") for _ in range(2))
    second.parameters[second.head[-1]][0] = torch.nan
    assert not self_test._gap(first, second) < 1


def test_a_fault_is_seen_and_ends_nothing(small_suite, monkeypatch):
    def doubles_the_rate(self, rate):
        set_rate(self, 2 * rate if self.rate is not None else rate)

    set_rate = updates.Stepper.set_rate
    monkeypatch.setattr(updates.Stepper, "set_rate", doubles_the_rate)
    failed = {line.name for line in checks() if line.passed is False}
    assert {"perceptron, sgd, recorded", "ResNet-8, adamw, recorded"} <= failed
    monkeypatch.setattr(lanes.Lane, "take_step", None)
    assert all("TypeError: 'NoneType'" in line.result for line in checks() if "recorded" in line.name)


def test_methods_are_compared_but_the_adapter_of_users_files():
    assert {"scrub", "npo", "classic"} & set(self_test.methods()) == {"scrub", "npo"}


def test_the_driver_is_what_its_file_says(tmp_path):
    (tmp_path / "version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)\nGCC"
    )
    assert card.driver(tmp_path / "version") == "580.65.06"
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n")
    assert (card.driver(tmp_path / "version"), card.driver(tmp_path / "none")) == ("535.183.01", "")


def test_the_command_prints_every_check_and_writes_them(small_suite, workdir, monkeypatch, capsys):
    facts = {"name": "A card", "capability": "9.0", "memory_mib": 81559, "driver": "5.6", "cuda": "13.0", "cudnn": 91}
    monkeypatch.setattr(card, "use", lambda: "cuda")
    monkeypatch.setattr(card, "describe", lambda: facts)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1 << 33, 1 << 34))
    for passed, code in ((True, 0), (False, 1)):
        check = self_test.Check("a check", passed, "a result", 1.25)
        monkeypatch.setattr(self_test, "run", lambda device, check=check: [check])
        assert gpu.run() == code
        *head, line, end = capsys.readouterr().out.splitlines()
        assert head == ["A card, compute capability 9.0, 8,192 of 81,559 MiB free", "driver 5.6, CUDA 13.0, cuDNN 91"]
        assert line == f"{'✓' if passed else '✗'} a check: a result (1.2 s)"
        assert end.startswith(f"1 checks, {code} failed.")


def test_without_a_card_the_command_says_so(monkeypatch):
    monkeypatch.setenv("UNLEARNING_DEVICE", "cpu")
    with pytest.raises(ValueError, match=r"^no GPU is visible"):
        gpu.run()
