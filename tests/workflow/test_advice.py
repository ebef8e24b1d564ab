"""What is said of a study before it runs slowly, and when nothing is to be said."""

import pytest
from unlearning_audit.training import device
from unlearning_audit.workflow import advice

from plan_cases import BASE, changed, make, planned

WITHOUT = "processor\t: 0\nflags\t\t: fpu avx avx2 fma\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WITHOUT, True),
        (WITHOUT.replace("fma", "fma avx512_bf16"), False),
        (WITHOUT.replace("fma", "amx_bf16 amx_tile"), False),
        ("processor\t: 0\nFeatures\t: fp asimd i8mm bf16\n", False),
        ("processor\t: 0\nFeatures\t: fp asimd\n", True),
    ],
)
def test_a_processor_says_by_its_flags_whether_it_multiplies_in_half_precision(tmp_path, text, expected):
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    assert device.emulates_bfloat16(file) is expected
    assert not device.emulates_bfloat16(tmp_path / "missing")


@pytest.fixture
def study(workdir, monkeypatch):
    """Plans a study of two scenarios, one of them in half precision, in an empty folder on such a processor."""
    monkeypatch.setattr(device, "gpus", lambda: 0)
    monkeypatch.setattr(device, "emulates_bfloat16", lambda: True)
    half = {"scenarios/half": {"recipe": {"epochs": 4}}}
    return lambda precision: planned(changed(BASE, half | {"scenarios/half/recipe/precision": precision}))


def test_training_in_half_precision_is_said_where_it_is_slow(study):
    plan = study("bfloat16")
    slow = [n for stage in ("train", "unlearn") for n in plan.nodes[stage].values()
            if n.settings["recipe"]["epochs"] == 4]  # fmt: skip
    said = advice.slow_precision(plan)
    assert len(slow) > 1
    assert said.startswith(f"{len(slow)} jobs train in bfloat16, which this processor has no instructions for")
    assert "recipe.precision: float32" in said


@pytest.mark.parametrize("better", ["float32", "card", "present"])
def test_nothing_is_said_where_nothing_is_slow(study, monkeypatch, better):
    plan = study("float32" if better == "float32" else "bfloat16")
    if better == "card":
        monkeypatch.setattr(device, "gpus", lambda: 1)
    if better == "present":
        make(plan)
    assert not advice.slow_precision(plan)
