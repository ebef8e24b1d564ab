"""What is said of a study before it runs slowly, and when nothing is to be said."""

import pytest
from unlearning_audit.study import reading
from unlearning_audit.training import device
from unlearning_audit.workflow import advice, plan

WITHOUT = "processor\t: 0\nflags\t\t: fpu avx avx2 fma\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WITHOUT, True),
        (WITHOUT.replace("fma", "fma avx512f avx512bw"), True),
        (WITHOUT.replace("fma", "fma avx512_bf16"), False),
        (WITHOUT.replace("fma", "amx_bf16 amx_tile"), False),
        ("processor\t: 0\nFeatures\t: fp asimd i8mm bf16\n", False),
        ("processor\t: 0\nFeatures\t: fp asimd\n", True),
        ("processor\t: 0\n", False),
    ],
)
def test_a_processor_says_by_its_flags_whether_it_multiplies_in_half_precision(tmp_path, text, expected):
    file = tmp_path / "cpuinfo"
    file.write_text(text)
    assert device.emulates_bfloat16(file) is expected
    assert not device.emulates_bfloat16(tmp_path / "missing")


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Plans a study of two scenarios, one of them in half precision, in an empty folder on such a processor."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(device, "gpus", lambda: 0)
    monkeypatch.setattr(device, "emulates_bfloat16", lambda: True)

    def made(precision):
        return plan.make(reading.read({
            "study": "slow",
            "defaults": {
                "data": {"name": "digits"}, "model": {"name": "mlp"}, "recipe": {"epochs": 2},
                "protocol": {"name": "swap", "pairs": 1}, "methods": {"none": {}, "retrain": {}},
                "attacks": {"loss": {}},
            },
            "scenarios": {"usual": {}, "half": {"recipe": {"epochs": 3, "precision": precision}}},
        }))  # fmt: skip

    return made


def test_training_in_half_precision_is_said_where_it_is_slow(study):
    planned = study("bfloat16")
    slow = [n for stage in ("train", "unlearn") for n in planned.nodes[stage].values()
            if n.settings["recipe"]["epochs"] == 3]  # fmt: skip
    said = advice.slow_precision(planned)
    assert len(slow) > 1
    assert said.startswith(f"{len(slow)} jobs train in bfloat16, which this processor has no instructions for")
    assert "recipe.precision: float32" in said


@pytest.mark.parametrize("better", ["float32", "card", "instructions", "present"])
def test_nothing_is_said_where_nothing_is_slow(study, monkeypatch, tmp_path, better):
    if better == "card":
        monkeypatch.setattr(device, "gpus", lambda: 1)
    if better == "instructions":
        monkeypatch.setattr(device, "emulates_bfloat16", lambda: False)
    planned = study("float32" if better == "float32" else "bfloat16")
    if better == "present":
        for stage in ("train", "unlearn"):
            for node in planned.nodes[stage].values():
                path = tmp_path / node.outputs["spec"]
                path.parent.mkdir(parents=True)
                path.write_text("{}")
    assert not advice.slow_precision(planned)
