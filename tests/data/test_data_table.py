"""Tables by the names of their columns: numbers standardised, categories encoded, and what cannot be read told."""

import re

import numpy as np
import pandas
import pytest
from unlearning_audit.data import prepare, table

ROWS = 40


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "age": rng.integers(20, 80, ROWS), "income": rng.normal(3e4, 1e4, ROWS),
            "city": rng.choice(["Bern", "Oslo", "Rome"], ROWS), "member": rng.random(ROWS) < 0.5,
            "zone": rng.choice([3, 7], ROWS), "part": ["train"] * 30 + ["test"] * 10,
            "sex": rng.choice(["f", "m"], ROWS), "outcome": rng.choice(["no", "yes"], ROWS),
        }
    )  # fmt: skip


def loaded(frame, tmp_path, suffix=".csv", **options):
    path = tmp_path / f"mine{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    settings = {"label": "outcome", "test": "part", "categories": ["zone"], **options}
    return table.load(table.Options(path=path.name, **settings), tmp_path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_numbers_are_standardised_on_training_rows_and_categories_encoded(frame, tmp_path, suffix):
    source = loaded(frame, tmp_path, suffix, group="sex")
    numbers = frame[["age", "income"]]
    standardised = (numbers - numbers[:30].mean()) / numbers[:30].std(ddof=0)
    encoded = [pandas.get_dummies(frame[name], dtype=float) for name in ("city", "member", "zone")]
    np.testing.assert_allclose(source.x, np.column_stack([standardised, *encoded]), rtol=1e-5)
    np.testing.assert_array_equal(source.y, frame["outcome"] == "yes")
    np.testing.assert_array_equal(source.part, frame["part"] == "test")
    np.testing.assert_array_equal(source.group, np.where(source.part == 0, 0, 1 + (frame["sex"] == "m")))


def test_rows_that_become_the_test_part_say_nothing_of_how_training_rows_are_scaled(frame, tmp_path):
    options = {"test": None, "columns": ["age", "income"], "categories": []}
    drawn = prepare(loaded(frame, tmp_path, **options), seed=0, test_size=0.25)
    test = drawn.index[drawn.part == 1]
    assert len(test) == 10
    np.testing.assert_allclose(drawn.x[drawn.part == 0].mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(drawn.x[drawn.part == 0].std(0), 1, rtol=1e-6)
    other = frame.copy()
    other.loc[test, ["age", "income"]] = 1e6
    again = prepare(loaded(other, tmp_path, **options), seed=0, test_size=0.25)
    np.testing.assert_array_equal(again.x[again.part == 0], drawn.x[drawn.part == 0])
    whole = loaded(frame, tmp_path, **options)
    np.testing.assert_array_equal(prepare(whole, seed=0, size=20).x, whole.x[prepare(whole, seed=0, size=20).index])


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        ({"age": np.nan}, {}, "column 'age' has no finite value in 40 rows; fill them, or drop these rows"),
        ({"city": None}, {}, "column 'city' has no finite value in 40 rows"),
        ({"outcome": [None] + ["no"] * 39}, {}, "column 'outcome' has no value in 1 rows"),
        ({"name": [f"n{i}" for i in range(ROWS)]}, {"most": 20}, "column 'name' has 40 different values, more than"),
        ({"part": "maybe"}, {}, "column 'part' holds 'maybe'; it must tell train (or 0) from test (or 1)"),
        ({"part": "test"}, {}, "column 'part' leaves no row for training"),
        ({"visit": range(ROWS)}, {"group": "visit", "most": 39}, "column 'visit' has 40 different values, more than"),
    ],
)
def test_what_cannot_be_read_is_told(frame, tmp_path, change, options, sentence):
    with pytest.raises(ValueError, match=rf"mine\.csv: {re.escape(sentence)}"):
        loaded(frame.assign(**change), tmp_path, **options)


def test_a_file_that_is_no_table_is_told_before_a_run_as_in_it(tmp_path):
    (tmp_path / "mine.parquet").write_bytes(b"not one")
    (tmp_path / "mine.csv").write_bytes(bytes(range(256)))
    for name, sentence in (
        ("mine.parquet", "it cannot be read as .parquet: "), ("mine.csv", "it cannot be read as .csv: "),
        ("none.csv", "it cannot be read as .csv: "), ("mine.xlsx", "a file of the kind '.xlsx' is not read; save the "),
    ):  # fmt: skip
        options = table.Options(path=name, label="y")
        with pytest.raises(ValueError, match=re.escape(f"{tmp_path / name}: {sentence}")):
            table.load(options, tmp_path)
        where, told = table.problem(options, tmp_path)
        assert (where, str(tmp_path / name) in told) == ("path", True)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_the_head_of_a_file_tells_which_field_names_no_column(frame, tmp_path, suffix):
    loaded(frame, tmp_path, suffix)
    sound = {"path": f"mine{suffix}", "label": "outcome", "test": "part"}
    assert table.problem(table.Options(**sound), tmp_path) is None
    for field, value, sentence in (
        ("label", "outcom", "there is no column 'outcom', did you mean 'outcome'? (known: age, "),
        ("test", "parts", "there is no column 'parts', did you mean 'part'?"),
        ("group", "team", "there is no column 'team' (known: age, city, "),
        ("columns", ["age", "wage"], "there is no column 'wage', did you mean 'age'?"),
        ("columns", ["age", "outcome"], "'outcome' is the label, which models must not read"),
        ("categories", ["town"], "there is no column 'town'"),
    ):
        options = table.Options(**sound | {field: value})
        where, told = table.problem(options, tmp_path)
        assert where == field
        assert told.startswith(f"{tmp_path / options.path}: {sentence}")
        with pytest.raises(ValueError, match=re.escape(f"{tmp_path / options.path}: {field}: {sentence}")):
            table.load(options, tmp_path)


@pytest.mark.parametrize(
    ("suffix", "separator", "cell"),
    [(".csv", ",", "0,5"), (".csv", ";", "1.234,5"), (".tsv", "\t", "1,234,567"), (".csv", ";", "0,25")],
)
def test_numbers_with_commas_are_refused(frame, tmp_path, suffix, separator, cell):
    frame["share"] = [cell, *["0,25"] * (ROWS - 1)]
    frame.to_csv(tmp_path / f"mine{suffix}", index=False, sep=separator)
    fields = {"path": f"mine{suffix}", "label": "outcome", "test": "part"}
    sentence = f"column 'share' says '{cell}'; write its numbers with a point, or name the column in categories"
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        table.load(table.Options(**fields), tmp_path)
    assert table.problem(table.Options(**fields), tmp_path) == ("path", str(error.value))
    categories = table.Options(**fields, categories=["share", "zone"])
    assert table.problem(categories, tmp_path) is None
    assert table.load(categories, tmp_path).x.shape[0] == ROWS


def test_a_word_among_numbers_is_told_and_makes_no_category(frame, tmp_path):
    frame = frame.astype({"age": object})
    frame.loc[6, "age"] = "?"
    sentence = r"column 'age': 39 of 40 cells are numbers, '\?' is not; leave the cell empty where a value is missing"
    with pytest.raises(ValueError, match=sentence):
        loaded(frame, tmp_path)
    assert loaded(frame, tmp_path, categories=["zone", "age"]).x.shape[0] == ROWS
