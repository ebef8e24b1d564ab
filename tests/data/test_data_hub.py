"""Folders of labelled data as the library datasets saves and loads them."""

import numpy as np
import pandas
import pytest
from PIL import Image
from unlearning_audit.data import hub

TEXTS = [
    f"a sentence about the number {number} and its {'even' if number % 2 == 0 else 'odd'} kin" for number in range(40)
]
LABELS = ["even" if number % 2 == 0 else "odd" for number in range(40)]


def table(start, stop):
    return {"sentence": TEXTS[start:stop], "label": LABELS[start:stop]}


def saved(folder):
    import datasets

    parts = {"train": datasets.Dataset.from_dict(table(0, 30)), "test": datasets.Dataset.from_dict(table(30, 40))}
    datasets.DatasetDict(parts).save_to_disk(str(folder))


def csv(folder):
    folder.mkdir()
    for name, rows in (("train", table(0, 30)), ("test", table(30, 40))):
        pandas.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)


def json_lines(folder):
    (folder / "data").mkdir(parents=True)
    for name, rows in (("train", table(0, 30)), ("test", table(30, 40))):
        pandas.DataFrame(rows).to_json(folder / "data" / f"{name}.jsonl", orient="records", lines=True)


def parquet(folder):
    (folder / "data").mkdir(parents=True)
    for name, rows in (("train-00000-of-00001", table(0, 30)), ("test-00000-of-00001", table(30, 40))):
        pandas.DataFrame(rows).to_parquet(folder / "data" / f"{name}.parquet")


@pytest.mark.parametrize("write", [saved, csv, json_lines, parquet])
def test_texts_are_the_same_in_all_layouts(write, tmp_path):
    write(tmp_path / "mine")
    source = hub.load(hub.Options(repository="mine", length=16), tmp_path)
    assert source.x.shape == (40, 16)
    assert source.y.tolist() == [LABELS[number] == "odd" for number in range(40)]
    assert source.part.tolist() == [0] * 30 + [1] * 10
    assert len({row.tobytes() for row in source.x}) == 40


def test_pictures_in_folders_of_their_classes(tmp_path):
    rng = np.random.default_rng(0)
    for part, count in (("train", 3), ("test", 2)):
        for name in ("cat", "dog"):
            folder = tmp_path / "mine" / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                value = rng.integers(0, 100, (8, 8, 3), np.uint8) + (100 if name == "dog" else 0)
                Image.fromarray(value.astype(np.uint8)).save(folder / f"{number}.png")
    source = hub.load(hub.Options(repository="mine", image_size=8), tmp_path)
    assert (source.x.shape, source.classes) == ((10, 3, 8, 8), 2)
    assert (source.x.mean((1, 2, 3)) > 90).tolist() == source.y.astype(bool).tolist()
    assert source.part.tolist() == [0] * 6 + [1] * 4


@pytest.mark.parametrize("write", [saved, csv])
def test_what_is_not_there_is_named(write, tmp_path):
    write(tmp_path / "mine")
    with pytest.raises(ValueError, match="mine has no split 'validation'; it has t"):
        hub.load(hub.Options(repository="mine", test="validation"), tmp_path)
    with pytest.raises(ValueError, match="mine: there is no column 'kind'; it has sentence, label"):
        hub.load(hub.Options(repository="mine", text="sentence", label="kind"), tmp_path)


def test_a_folder_without_data_is_one_sentence(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(ValueError, match=r"^mine cannot be read"):
        hub.load(hub.Options(repository="mine"), tmp_path)
