"""How the worth of metrics is shown: its table, its file and its drawing."""

import numpy as np
import pytest
from unlearning_audit.artifacts.arrays import ArtifactError
from unlearning_audit.comparisons import meta
from unlearning_audit.display import style
from unlearning_audit.display.figures import _meta
from unlearning_audit.display.tables import formats
from unlearning_audit.display.tables import meta as display

from meta_cases import evaluated, rows, several


def test_a_study_with_nothing_to_measure_has_no_rows(tmp_path):
    files = {kind: tmp_path / f"meta.{kind}" for kind in ("csv", "md", "tex")}
    formats.write(display.sheets([]), **files)
    assert display.read(files["csv"]) == []


def test_the_table_has_a_line_for_each_measure_and_a_reason_for_each_blank(tmp_path):
    table = rows({"retrain": 0.99, "none": 0.6, "a": 0.8}) + rows(
        {"retrain": 1.0, "none": 3.0}, metric="efficacy_median", attack="", scenario="other"
    )
    shown, *_, by_scenario = display.sheets(evaluated(table))
    assert [line.label for line in shown.lines] == ["Q", "efficacy"]
    assert [line.section for line in by_scenario.lines] == ["noisy", "other"]
    assert [head.label for head in shown.heads] == ["grounding", "separation", "power"]
    ungrounded = shown.lines[1].cells[0]
    assert ungrounded.text == "—"
    assert "perfect" in ungrounded.notes[0]
    files = {kind: tmp_path / f"meta.{kind}" for kind in ("csv", "md", "tex")}
    formats.write([shown, by_scenario], **files)
    assert all(path.stat().st_size for path in files.values())


def test_a_study_without_anything_to_say_of_metrics_has_a_file_that_can_be_read(tmp_path):
    files = {kind: tmp_path / f"meta.{kind}" for kind in ("csv", "md", "tex")}
    formats.write(display.sheets([]), **files, columns=display.COLUMNS)
    assert display.read(files["csv"]) == []


def test_the_table_says_what_is_read_on_other_models():
    shown, *_ = display.sheets(several())
    assert [line.label for line in shown.lines] == ["Q", "F / F₀", "efficacy"]
    groups = {head.label: head.group for head in shown.heads}
    assert (groups["power"], groups["monotonicity"], groups["models"]) == ("scenario noisy", "scenario budget", "")
    assert shown.lines[-1].notes == ("on other models, those of scenario other",)
    cells = dict(zip(groups, shown.lines[0].cells, strict=True))
    assert (cells["models"].text, cells["monotonicity"].tone) == ("8", "good")


def test_what_was_written_is_read_again(tmp_path):
    found = several()
    files = {kind: tmp_path / f"meta.{kind}" for kind in ("csv", "md", "tex")}
    formats.write(display.sheets(found), **files)
    for kept, row in zip(display.read(files["csv"]), found, strict=True):
        assert kept.keys() == row.keys()
        for name, value in row.items():
            same = (
                kept[name] == value if isinstance(value, str) else np.isclose(kept[name], value, 1e-9, equal_nan=True)
            )
            assert same, (name, kept[name], value)
    files["csv"].write_text("metric,property,scenario,value,ci_low,ci_high,n,note\nQ,power,a,x,,,1,\n")
    with pytest.raises(ArtifactError, match=r"meta\.csv"):
        display.read(files["csv"])


def drawn(found, folder):
    folder.mkdir()
    files = {kind: folder / f"meta.{kind}" for kind in ("svg", "png")}
    style.save(_meta.draw(found), **files)
    return files


def test_the_figure_names_every_metric_and_property_and_keeps_its_bytes(tmp_path):
    one, other = (drawn(several(), tmp_path / name) for name in "ab")
    assert one["svg"].read_bytes() == other["svg"].read_bytes()
    text = one["svg"].read_text()
    shown = ("Q", "F / F₀", "efficacy (other)", "grounding", "separation", "power", "monotonicity", "cost", "(budget)")
    assert [name for name in shown if f">{name}<" not in text] == []
    assert ">over seeds<" in text
    assert ">over sizes<" not in text


def test_a_study_without_any_such_metric_has_a_drawing_that_says_so(tmp_path):
    assert "No metric of this study" in drawn([], tmp_path / "none")["svg"].read_text()


def test_properties_are_shown_of_the_models_of_which_most_metrics_show_power():
    def rows(what, **counts):
        return [{"property": what, "scenario": scenario} for scenario, n in counts.items() for _ in range(n)]

    some = [
        *rows("power", text=2, noisy=3), *rows("agreement over seeds", text=3, noisy=1), *rows("monotonicity", budget=1)
    ]  # fmt: skip
    assert [meta.common(some, what) for what in ("power", "models", "agreement over seeds", "monotonicity")] == [
        "noisy", "noisy", "noisy", "budget"
    ]  # fmt: skip
    assert meta.common([], "power") == meta.common(some, "grounding") == ""
