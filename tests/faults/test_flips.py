"""The short form of the campaign of flipped bits: every kind of artifact of the tiny study."""

import numpy as np
import pytest

import flips

pytestmark = pytest.mark.slow


def test_no_flipped_bit_goes_unnoticed(finished, tmp_path):
    kinds = flips.artifacts(finished.copy(tmp_path / "work").folder / "results")
    assert len(kinds) >= 13
    rng = np.random.default_rng(0)
    wrong = [flips.attempt(kind, files, rng) for kind, files in kinds.items() for _ in range(25)]
    assert not any(wrong), "\n".join(filter(None, wrong))


def test_an_artifact_without_checksum_would_be_found_out(finished, tmp_path):
    """The campaign itself can fail: a file of one's own is not checked, and many flips in it go unnoticed."""
    kinds = flips.artifacts(finished.copy(tmp_path / "work").folder / "results")
    (kind,) = (kind for kind in kinds if kind.endswith("models.safetensors"))
    for path in kinds[kind]:
        path.with_name("spec.json").write_text("{}")
    rng = np.random.default_rng(0)
    outcomes = [flips.attempt(kind, kinds[kind], rng) for _ in range(20)]
    assert sum("not noticed" in outcome for outcome in outcomes) > 10
