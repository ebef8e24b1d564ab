"""Every fault of a study is one plain sentence with the file's name and the field's path; nothing else is raised."""

import math
import re
from pathlib import Path

import pytest
import yaml
from unlearning_audit.study import reading
from unlearning_audit.study.messages import StudyError

from study_cases import CONTRADICTORY, SMALL, WRONG, changed

ROOT = Path(__file__).parents[2]

JARGON = re.compile(r"[Ii]nput|valid (integer|number|string)|to parse|pydantic|https?:|Traceback|NoneType|dict|tuple")
TOP = re.compile(r"config\.yaml: (study|seed|batch|bootstrap|only|defaults|scenarios|tables|figures)\b")


def sentence(config: dict, **how) -> str:
    """What is wrong with ``config``, which must be one sentence without jargon."""
    with pytest.raises(StudyError) as caught:
        reading.read(config, **how)
    message = str(caught.value)
    assert "\n" not in message
    assert not message.endswith(".")
    assert not JARGON.search(message.split(": ", 1)[1]), message
    return message


def test_the_small_study_is_sound():
    study = reading.read(changed())
    assert [(s.name, s.setting) for s in study.scenarios] == [
        ("clean", ""), ("noisy", ""), ("size", "size=400"), ("size", "size=800"),
    ]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "expected"), WRONG, ids=[f"{path} = {text}" for path, text, _ in WRONG])
def test_a_wrong_field_is_named(path, text, expected):
    assert sentence(changed((path, text))).startswith(f"config.yaml: {expected}")


@pytest.mark.parametrize(("edits", "expected"), CONTRADICTORY, ids=[expected[:60] for _, expected in CONTRADICTORY])
def test_fields_that_contradict_each_other_are_named(edits, expected):
    assert sentence(changed(*edits)).startswith(f"config.yaml: {expected}")


@pytest.mark.parametrize("value", [None, [], {}, "text", "5e3", -1, 3.7, True, math.nan, [[]], {"a": {}}, {"int": 3}])
def test_whatever_stands_anywhere_is_taken_or_named(value):
    """Each field of the small study in turn; no other exception gets out, and the sentence begins with a field."""
    accepted = 0
    for path in paths(changed()):
        config = changed()
        node = config
        for part in path[:-1]:
            node = node[part]
        node[path[-1]] = value
        message = fault(config)
        accepted += message is None
        assert message is None or TOP.match(message)
    assert accepted < 20


def fault(config: dict) -> str | None:
    """What is wrong, None if nothing is."""
    try:
        reading.read(config)
    except StudyError as error:
        return str(error)
    return None


def paths(value, path=()):
    """The paths of all fields."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from paths(item, (*path, key))


# ---------------------------------------------------------------- merging


def test_the_layer_that_set_a_field_is_blamed():
    """A wrong value is found where it is written, not where it is used."""
    bad = ("scenarios/size/vary", "{depth: {deep: {model: {hidden: [0]}}, flat: {}}}")
    assert sentence(changed(bad)).startswith("config.yaml: scenarios.size.vary.depth.deep.model.hidden.0: must be at ")
    partial = changed(("defaults/data", "{name: arrays}"), ("scenarios", "{a: {data: {path: x}}}"))
    assert "scenarios.a.data.path: 'x' does not exist" in sentence(partial)


def test_a_scenario_overrides_defaults_field_by_field():
    scenarios = "{a: {model: {activation: tanh}, methods: [none, neggrad]}, b: {model: {name: linear}}}"
    a, b = reading.read(changed(("scenarios", scenarios), ("tables", ""), ("figures", ""))).scenarios
    assert a.model.options == {"hidden": [16], "activation": "tanh"}
    assert (list(a.methods), a.methods["neggrad"].options["lr"]) == (["none", "neggrad"], 0.1)
    assert (b.model.name, b.model.options) == ("linear", {})
    assert list(b.methods) == ["none", "retrain", "neggrad", "retrain_control"]


def test_axes_multiply_and_reach_into_methods():
    """A field of one method varies; the others, and the method's other options, stay."""
    vary = "{methods.neggrad.lr: [0.1, 0.2], width: {8: {model: {hidden: [8]}}, 16: {}}}"
    scenarios = f"{{a: {{vary: {vary}, methods: [none, neggrad]}}}}"
    epochs = ("defaults/methods/neggrad", "{epochs: 2}")
    variants = reading.read(changed(("scenarios", scenarios), ("tables", ""), ("figures", ""), epochs)).scenarios
    assert {s.setting: (s.methods["neggrad"].options["lr"], s.model.options["hidden"]) for s in variants} == {
        "lr=0.1;width=8": (0.1, [8]), "lr=0.1;width=16": (0.1, [16]),
        "lr=0.2;width=8": (0.2, [8]), "lr=0.2;width=16": (0.2, [16]),
    }  # fmt: skip
    assert all(list(s.methods) == ["none", "neggrad"] for s in variants)
    assert {s.methods["neggrad"].options["epochs"] for s in variants} == {2}


def test_the_control_draws_other_models_than_retraining():
    config = changed(("defaults/methods/retrain", "{draw: 1}"))
    methods = reading.read(config).scenarios[0].methods
    assert methods["retrain_control"].options == {"draw": 2, "same_start": False}
    off = reading.read(changed(("defaults/controls", "false"))).scenarios[0].methods
    assert "retrain_control" not in off


# ---------------------------------------------------------------- files and the command line


def test_later_files_override_earlier_ones(workdir):
    Path("small.yaml").write_text(SMALL)
    Path("more.yaml").write_text("seed: 7\ndefaults: {recipe: {epochs: 5}}\n")
    config, origin = reading.load(["small.yaml", "more.yaml"])
    assert origin == "small.yaml + more.yaml"
    study = reading.read(config, origin)
    assert (study.seed, study.scenarios[0].recipe.epochs, study.scenarios[0].recipe.lr) == (7, 5, 0.1)


def test_only_keeps_some_scenarios_and_what_speaks_of_them():
    both = changed()
    both["scenarios"] = {"one": {}, "two": {"recipe": {"lr": 0.2}}}
    both["tables"] = {
        "first": {"title": "t", "metric": "q", "scenarios": ["one"]},
        "all": {"title": "t", "metric": "q", "scenarios": ["one", "two"]},
    }
    both["figures"] = {}
    whole, part = reading.read(both), reading.read({**both, "only": ["one"]})
    assert [s.name for s in whole.scenarios] == ["one", "two"]
    assert [s.name for s in part.scenarios] == ["one"]
    assert (part.name, list(part.tables)) == (f"{whole.name}-one", ["first"])
    assert len(reading.read({**both, "only": ["swap"]}).scenarios) == 2
    unknown = "only: there is no scenario, protocol or system 'swop', did you mean 'swap'"
    with pytest.raises(StudyError, match=unknown):
        reading.read({**both, "only": ["swop"]})


def test_a_system_is_all_of_its_protocols_and_what_they_select_from():
    whole = reading.read(*reading.load([ROOT / "studies/tour.yaml"]))
    part = reading.select(whole, ["ruli"])
    assert {s.name for s in part.scenarios} == {"ruli", "halves", "memorised"}
    assert set(part.tables) == {name for name in whole.tables if name.startswith("ruli")}
    assert reading.select(whole, ["memorised"]).scenarios == tuple(s for s in part.scenarios if s.name != "ruli")
    assert {s.record.system for s in whole.scenarios if s.name in ("random", "confusion")} == {"swap"}


def test_the_command_line_has_types_and_is_blamed():
    """Snakemake leaves text inside the mappings that --config gives."""
    study = reading.read(changed(), changes={"seed": 3, "defaults": {"recipe": {"epochs": "5", "lr": "0.5"}}})
    assert (study.seed, study.scenarios[0].recipe.epochs, study.scenarios[0].recipe.lr) == (3, 5, 0.5)
    for changes, expected in (
        ({"bootstap": 3}, "bootstap: there is no such field, did you mean 'bootstrap'? (known: "),
        ({"seed": "x"}, "seed: must be a whole number, found 'x' (given by --config)"),
        (
            {"defaults": {"recipe": {"epochs": "5.5"}}},
            "defaults.recipe.epochs: must be a whole number, found 5.5 (given",
        ),
    ):
        message = sentence(changed(), changes=changes)
        assert message.startswith(f"config.yaml: {expected}")
        assert message.endswith("(given by --config)")
    assert "--config" not in sentence(changed(("seed", "x")), changes={"batch": 3})


def test_a_column_that_the_file_lacks_is_named_with_its_field_before_anything_runs(workdir):
    Path("mine.csv").write_text("age,outcome\n1,yes\n2,no\n", encoding="utf-8")
    table = "{name: table, path: mine.csv, label: LABEL, test_size: 1}"
    one = [("scenarios/noisy", ""), ("scenarios/size", ""), ("tables", ""), ("figures", "")]
    sound = changed(("defaults/data", table.replace("LABEL", "outcome")), *one)
    reading.read(sound)
    absent = "mine.csv: there is no column 'outcomes', did you mean 'outcome'? (known: age, outcome)"
    with pytest.raises(StudyError) as error:
        reading.read(changed(("defaults/data/label", "outcomes"), base=yaml.safe_dump(sound)))
    assert str(error.value) == f"config.yaml: defaults.data.label: {absent}"
    Path("mine.csv").write_text("age,outcomes\n1,yes\n2,no\n", encoding="utf-8")  # the file, and not the study
    with pytest.raises(StudyError, match=r"data\.label: mine\.csv: there is no column 'outcome',"):
        reading.read(sound)
