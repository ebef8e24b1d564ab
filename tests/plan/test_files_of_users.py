"""Files of users: every edit that changes numbers or displays renames or redraws them, and none is read as another."""

from pathlib import Path

import pytest
from unlearning_audit.store import folders
from unlearning_audit.workflow import parameters

from plan_cases import BASE, changed, planned, rebuilt

OPTIONS = """
from unlearning_audit.plugins.settings import Settings

class Options(Settings):
    {fields}

"""
ATTACK = "def score(logits, y, shadow, options, rng):\n    return logits[..., 0] * {factor}, logits[..., 0] > 0\n"
METRIC = "def rows(evaluation, options, rng):\n    return []\n"
METHOD = "def unlearn(stack, forget, retain, options):\n    pass\n"
READS = """
from pathlib import Path

def content(options):
    return [Path(options.data_dir) / 'numbers.txt']

def load(options, root):
    return None
"""


def write(path: Path, text: str, fields: str = "pass") -> str:
    path.write_text(OPTIONS.format(fields=fields) + text)
    return str(path)


def study(**edits):
    """The plan of the base study with other fields of its scenario."""
    return planned(changed(BASE, {f"scenarios/main/{field}": value for field, value in edits.items()}))


def test_files_that_change_places_are_told_apart(tmp_path):
    a, b = (write(tmp_path / f"m{factor}.py", ATTACK.format(factor=factor)) for factor in (2, 3))
    before, after = (study(attacks={"a": {"file": x}, "b": {"file": y}, "random": {}}) for x, y in ((a, b), (b, a)))
    assert "metrics" in rebuilt(before, after)


def test_words_of_a_metric_redraw_displays_and_names_of_its_rows_measure_again(tmp_path):
    path = tmp_path / "gap.py"

    def with_quantities(text: str):
        head = "from unlearning_audit.plugins.declarations import Quantity\n"
        write(path, f"{head}QUANTITIES = ({text})\n{METRIC}")
        return study(metrics={"gap": {"file": str(path)}})

    plain = with_quantities('Quantity("", label="my gap"),')
    table = parameters.table(plain, "quality")
    other_words = with_quantities('Quantity("", label="your gap"),')
    assert not rebuilt(plain, other_words)
    assert parameters.table(other_words, "quality") != table
    other_rows = with_quantities('Quantity("", label="my gap"), Quantity("more")')
    assert set(rebuilt(plain, other_rows)) == {"metrics", "comparisons"}


def test_of_what_a_source_of_ones_own_reads_the_content_counts(tmp_path):
    path = write(tmp_path / "mine.py", READS, "data_dir: str = 'data'")

    def read(content: str):
        (tmp_path / "numbers.txt").write_text(content)
        return study(data={"name": "mine", "file": path, "data_dir": str(tmp_path), "label_noise": 0.2})

    assert "data" in rebuilt(read("1"), read("2"))


def test_a_file_that_is_edited_while_the_study_runs_files_nothing_under_the_key_of_what_it_held(tmp_path):
    """The user's own file, a helper beside it, what it depends on, and data."""
    helper, numbers, words = (tmp_path / name for name in ("a_helper_of_mine.py", "numbers.txt", "words.txt"))
    for path in (helper, numbers, words):
        path.write_text("1")
    method = Path(write(tmp_path / "mine.py", "import a_helper_of_mine\n" + METHOD))
    data = write(tmp_path / "own.py", READS, "data_dir: str = 'data'")
    plan = study(
        methods={"none": {}, "retrain": {}, "mine": {"file": str(method), "depends": [str(words)]}},
        data={"name": "own", "file": data, "data_dir": str(tmp_path), "label_noise": 0.2},
    )
    asked = next(node.place["contents"] for node in plan.nodes["unlearn"].values() if "-mine-" in node.name)
    (loaded,) = (node.place["contents"] for node in plan.nodes["data"].values())
    for place, paths in ((asked, (method, helper, words)), (loaded, (numbers, Path(data)))):
        for path in paths:
            folders.refuse_changes(place)
            before = path.read_text()
            path.write_text(f"{before}\nx = 1\n")
            with pytest.raises(ValueError, match=f"{path.name}: this file has changed since the run began; start the"):
                folders.refuse_changes(place)
            path.write_text(before)
    assert not any("contents" in node.place for node in plan.nodes["splits"].values())


def test_needs_that_nobody_knows_are_refused(tmp_path):
    file = write(tmp_path / "mine.py", 'NEEDS = ("squared_norm",)\n' + METRIC)
    with pytest.raises(ValueError, match=r"metrics\.mine: has NEEDS = 'squared_norm'; protocols offer"):
        study(metrics={"mine": {"file": file}})


@pytest.mark.parametrize(("kind", "name"), [("attacks", "min_k"), ("metrics", "rouge")])
def test_what_only_language_models_say_is_refused_before_training_others(kind, name):
    with pytest.raises(ValueError, match=rf"{kind}\.{name}: needs \w+, which mlp does not provide; .* gpt2, gpt_neox"):
        study(**{kind: {name: {}, **({"confidence": {}} if kind == "attacks" else {})}})
