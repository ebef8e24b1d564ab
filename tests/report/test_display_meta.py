"""How the worth of metrics is shown: its table, its file and its drawing."""

import numpy as np
import pytest
from unlearning_audit.evaluation.arrays import ArtifactError
from unlearning_audit.report import style
from unlearning_audit.report.figures import _meta
from unlearning_audit.report.tables import formats
from unlearning_audit.report.tables import meta as display

from meta_cases import evaluated, rows, several


def test_a_study_with_nothing_to_measure_has_no_rows(tmp_path):
    files = {kind: tmp_path / f"meta.{kind}" for kind in ("csv", "md", "tex")}
    formats.write(display.sheets([]), **files)
    assert display.read(files["csv"]) == []


def test_the_table_has_a_line_for_each_measure_and_a_reason_for_each_blank(tmp_path):
    table = rows({"retrain": 0.99, "none": 0.6, "a": 0.8}) + rows(
        {"retrain": 1.0, "none": 3.0}, metric="efficacy_median", attack="", scenario="other"
    )
    sheet, *_ = display.sheets(evaluated(table))
    assert [line.label for line in sheet.lines] == ["Q", "efficacy"]
    assert [head.label for head in sheet.heads] == ["grounding", "separation", "power"]
    ungrounded = sheet.lines[1].cells[0]
    assert ungrounded.text == "—"
    assert "perfect" in ungrounded.notes[0]
    files = {kind: tmp_path / f"meta.{kind}" for kind in ("csv", "md", "tex")}
    formats.write([sheet], **files)
    assert all(path.stat().st_size for path in files.values())


def test_a_study_without_anything_to_say_of_metrics_has_a_file_that_can_be_read(tmp_path):
    files = {kind: tmp_path / f"meta.{kind}" for kind in ("csv", "md", "tex")}
    formats.write(display.sheets([]), **files, columns=display.COLUMNS)
    assert display.read(files["csv"]) == []


def test_the_table_says_what_is_read_on_other_models():
    sheet, *_ = display.sheets(several())
    assert [line.label for line in sheet.lines] == ["Q", "F / F₀", "efficacy"]
    groups = {head.label: head.group for head in sheet.heads}
    assert (groups["power"], groups["monotonicity"], groups["models"]) == ("scenario noisy", "scenario budget", "")
    assert sheet.lines[-1].notes == ("on other models, those of scenario other",)
    cells = dict(zip(groups, sheet.lines[0].cells, strict=True))
    assert (cells["models"].text, cells["monotonicity"].tone) == ("8", "good")


def test_what_was_written_is_read_again(tmp_path):
    table = several()
    files = {kind: tmp_path / f"meta.{kind}" for kind in ("csv", "md", "tex")}
    formats.write(display.sheets(table), **files)
    for read, row in zip(display.read(files["csv"]), table, strict=True):
        assert read.keys() == row.keys()
        for name, value in row.items():
            same = (
                read[name] == value if isinstance(value, str) else np.isclose(read[name], value, 1e-9, equal_nan=True)
            )
            assert same, (name, read[name], value)
    files["csv"].write_text("metric,property,scenario,value,ci_low,ci_high,n,note\nQ,power,a,x,,,1,\n")
    with pytest.raises(ArtifactError, match=r"meta\.csv"):
        display.read(files["csv"])


def draw_files(table, folder):
    folder.mkdir()
    files = {kind: folder / f"meta.{kind}" for kind in ("svg", "png")}
    style.save(_meta.draw(table), **files)
    return files


def test_the_figure_names_every_metric_and_property_and_keeps_its_bytes(tmp_path):
    first, second = (draw_files(several(), tmp_path / name) for name in "ab")
    assert first["svg"].read_bytes() == second["svg"].read_bytes()
    text = first["svg"].read_text()
    labels = ("Q", "F / F₀", "efficacy (other)", "grounding", "separation", "power", "monotonicity", "cost", "(budget)")
    assert [name for name in labels if f">{name}<" not in text] == []
    assert ">over seeds<" in text
    assert ">over sizes<" not in text
