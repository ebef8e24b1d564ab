"""The file of contributions: what stands for what is not given, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from unlearning_audit.evaluation import contributions as added
from unlearning_audit.evaluation.contributions import Contribution, Standard
from unlearning_audit.store.files import ArtifactError

STANDARD = Standard(-1, "auc", ideal=0.5, scale="ratio", deciding=False, far=False, units="forks", narrows=False,
                    chance=added.OF_RETRAINED)  # fmt: skip
ONE = Contribution(
    ("a", "b"), np.arange(6.0).reshape(2, 3), np.arange(24.0).reshape(2, 3, 4), np.arange(12.0).reshape(2, 3, 2),
    np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([4, 2, 9, 7]), STANDARD, np.array([0.25, 1.0]),
)  # fmt: skip


@pytest.mark.parametrize(
    "standard", [STANDARD, Standard(1, "accuracy", ideal=0.0), Standard(1, "x", ideal=-3.0, lowest=-4.0)]
)
def test_every_field_of_a_contribution_is_read_as_it_was_written(tmp_path, standard):
    parts = {"one": replace(ONE, standard=standard), "two": ONE, "three": replace(ONE, p=None)}
    added.write(tmp_path / "a.npz", parts)
    stored = added.read(tmp_path / "a.npz")
    assert list(stored) == ["one", "two", "three"]
    for name, part in stored.items():
        for field, value in vars(parts[name]).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(part, field), value, strict=True)
            else:
                assert getattr(part, field) == value


def test_a_single_number_has_no_samples_splits_or_imaginary_samples_unless_given():
    part = added.single(value=np.arange(3.0), unit=[1, 1, 2], standard=STANDARD)
    assert part.names == ("",)
    assert part.value.tolist() == [[0.0, 1.0, 2.0]]
    assert (part.influence.shape, part.imagined.shape) == ((1, 3, 0), (1, 3, 0))
    assert (part.unit.tolist(), part.split.tolist(), part.index.tolist()) == ([1, 1, 2], [0, 0, 0], [])
    influence, imagined = np.arange(6.0).reshape(3, 2), np.arange(12.0).reshape(3, 4)
    part = added.single(value=np.arange(3.0), influence=influence, unit=[1, 1, 2], standard=STANDARD, split=[0, 1, 0],
                        imagined=imagined)  # fmt: skip
    np.testing.assert_array_equal(part.influence, influence[None])
    np.testing.assert_array_equal(part.imagined, imagined[None])
    assert (part.split.tolist(), part.index.tolist()) == ([0, 1, 0], [0, 1])
    numbered = added.single(value=np.arange(3.0), influence=influence, unit=[1, 1, 2], standard=STANDARD, index=[8, 5])
    assert numbered.index.tolist() == [8, 5]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"value": ONE.value[:, :2]}, r"'x.influence' has shape \(2, 3, 4\), expected \(2, 2, 4\)"),
        ({"value": ONE.value[:1]}, r"'x.value' has shape \(1, 3\), expected \(2, any\)"),
        ({"imagined": ONE.imagined[:, :1]}, r"'x.imagined' has shape \(2, 1, 2\), expected \(2, 3, any\)"),
        ({"split": ONE.split[:1]}, r"'x.split' has shape \(1,\), expected \(3\)"),
        ({"index": ONE.index[:3]}, r"'x.influence' has shape \(2, 3, 4\), expected \(2, 3, 3\)"),
        (
            {"value": ONE.value[:, :0], "influence": ONE.influence[:, :0], "imagined": ONE.imagined[:, :0],
             "unit": ONE.unit[:0], "split": ONE.split[:0]},
            r"'x.value' has shape \(2, 0\), but needs a number and a model at least",
        ),
        (
            {"names": (), "value": ONE.value[:0], "influence": ONE.influence[:0], "imagined": ONE.imagined[:0]},
            r"'x.value' has shape \(0, 3\), but needs a number and a model at least",
        ),
        *[
            ({"standard": replace(STANDARD, direction=way)}, f"'x.direction' is {way}, but must be one of 1, -1")
            for way in (0, 2, -2)
        ],
        ({"standard": replace(STANDARD, scale="x")}, "'x.scale' is 'x', but must be one of difference, ratio, log"),
        *[
            ({"p": np.array(p)}, "'x.p' must be a p-value for each of 2 numbers, or empty")
            for p in ([0.5], [0.5, 1.5])
        ],
        ({"standard": replace(STANDARD, chance="x")}, "'x.chance' is 'x', but must be one of samples, ret"),
    ],
)  # fmt: skip
def test_a_contribution_that_breaks_its_promise_is_told(tmp_path, change, problem):
    added.write(tmp_path / "a.npz", {"x": replace(ONE, **change)})
    with pytest.raises(ArtifactError, match=f"a.npz: field {problem}"):
        added.read(tmp_path / "a.npz")
