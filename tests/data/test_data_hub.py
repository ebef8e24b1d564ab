"""Folders of labelled data as the library datasets saves and loads them."""

import datasets
import numpy as np
import pandas
import pytest
from PIL import Image
from unlearning_audit.data import hub

KINDS = ["even", "odd"] * 20
TEXTS = [f"a sentence about the number {number} and its {kind} kin" for number, kind in enumerate(KINDS)]


def write(folder, layout="saved", label="label"):
    """Thirty texts for training and ten for tests."""
    (folder / "data").mkdir(parents=True)
    whole = pandas.DataFrame({"sentence": TEXTS, label: KINDS, "note": [None] * 40})
    parts = {"train": whole[:30], "test": whole[30:].reset_index(drop=True)}
    for name, part in parts.items():
        if layout == "csv":
            part.to_csv(folder / f"{name}.csv", index=False)
        elif layout == "json":
            part.to_json(folder / "data" / f"{name}.jsonl", orient="records", lines=True)
        elif layout == "parquet":
            part.to_parquet(folder / "data" / f"{name}-00000-of-00001.parquet")
    if layout == "saved":
        tables = {name: datasets.Dataset.from_pandas(part) for name, part in parts.items()}
        datasets.DatasetDict(tables).save_to_disk(str(folder))


def load(root, **options):
    return hub.load(hub.Options(**{"repository": "mine", "length": 16, **options}), root)


@pytest.mark.parametrize("layout", ["saved", "csv", "json", "parquet"])
def test_texts_are_the_same_in_all_layouts_and_columns_are_found(layout, tmp_path):
    write(tmp_path / "mine", layout)
    source = load(tmp_path)
    assert source.x.shape == (40, 16)
    assert source.y.tolist() == [kind == "odd" for kind in KINDS]
    assert source.part.tolist() == [0] * 30 + [1] * 10
    assert len({row.tobytes() for row in source.x}) == 40
    np.testing.assert_array_equal(load(tmp_path, text="sentence", label="label").x, source.x)


def test_pictures_in_folders_of_their_classes_keep_their_pixels(tmp_path):
    rng, pixels = np.random.default_rng(0), []
    for part, count in (("train", 3), ("test", 2)):
        for name in ("cat", "dog"):
            folder = tmp_path / "mine" / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                pixels.append(rng.integers(256, size=(8, 8, 3), dtype=np.uint8))
                Image.fromarray(pixels[-1]).save(folder / f"{number}.png")
    source = load(tmp_path, image_size=8)
    np.testing.assert_array_equal(source.x, np.transpose(pixels, (0, 3, 1, 2)))
    assert (source.y.tolist(), source.part.tolist()) == ([0, 0, 0, 1, 1, 1, 0, 0, 1, 1], [0] * 6 + [1] * 4)
    assert load(tmp_path, image="image", label="label", image_size=4, most=5).x.shape == (9, 3, 4, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "sentence", "label": "kind"}, "mine: there is no column 'kind'; it has sentence, label, note"),
        ({"image": "sentence", "label": "label"}, "row 1 of train: sentence is str, not an image"),
        ({"text": "note", "label": "label"}, "row 1 of train: note holds no text"),
        ({"text": "sentence", "label": "note"}, "row 1 of train: note is None, not a label"),
        ({"text": "label", "label": "sentence"}, "sentence: the training part has no label"),
        ({"text": "sentence", "test": "validation"}, "mine has no split 'validation'; it has t"),
        ({"repository": "other"}, "the column with labels could be sentence, kind, note; name it"),
        ({"repository": "empty"}, "^empty cannot be read"),
        ({"text": "sentence", "test": None}, "without a test split there is no text to learn tokens"),
        ({"image": "x", "text": "y"}, "either image or text"),
    ],
)
def test_what_is_not_there_is_named(options, message, tmp_path):
    write(tmp_path / "mine")
    write(tmp_path / "other", label="kind")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=message):
        load(tmp_path, **options)


def test_a_name_that_is_nowhere_is_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="nobody/nothing is neither a folder nor a data set that can be downloaded"):
        load(tmp_path, repository="nobody/nothing", text="text")
