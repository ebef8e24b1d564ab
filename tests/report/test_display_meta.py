"""How the worth of metrics is shown: its table, its file and its drawing."""

import numpy as np
from unlearning_audit.report.figures import _meta
from unlearning_audit.report.tables import meta as display

from display_cases import words_of, written
from meta_cases import several


def test_the_table_says_what_is_read_on_other_models():
    sheet, *_ = display.sheets(several())
    assert [line.label for line in sheet.lines] == ["Q", "F / F₀", "efficacy"]
    groups = {head.label: head.group for head in sheet.heads}
    assert (groups["power"], groups["monotonicity"], groups["models"]) == ("scenario noisy", "scenario budget", "")
    assert sheet.lines[-1].notes == ("on other models, those of scenario other",)
    cells, blank = dict(zip(groups, sheet.lines[0].cells, strict=True)), sheet.lines[-1].cells[0]
    assert (blank.text, "perfect" in blank.notes[0]) == ("—", True)
    assert (cells["models"].text, cells["monotonicity"].tone) == ("8", "good")


def test_what_was_written_is_read_again(tmp_path):
    assert display.read(written(display.sheets([]), tmp_path, columns=display.COLUMNS)["csv"]) == []
    table = several()
    file = written(display.sheets(table), tmp_path)["csv"]
    for read, row in zip(display.read(file), table, strict=True):
        words = {name: value for name, value in row.items() if isinstance(value, str)}
        assert {name: read[name] for name in words} == words
        numbers = row.keys() - words.keys()
        assert np.allclose([read[n] for n in numbers], [row[n] for n in numbers], 1e-9, equal_nan=True)


def test_the_figure_names_every_metric_and_property():
    words = words_of(_meta.draw(several()))
    labels = ("Q", "F / F₀", "efficacy (other)", "grounding", "separation", "power", "monotonicity", "cost", "(budget)",
              "over seeds", "over sizes")  # fmt: skip
    assert [name for name in labels if name not in words] == ["over sizes"]
