"""The whole pretended matrix goes on where it was stopped."""

import importlib.util
from pathlib import Path

import pytest


def test_cells_that_are_kept_are_not_run_again(monkeypatch, tmp_path, capsys):
    file = Path(__file__).parents[1] / "benchmarks" / "pretended_matrix.py"
    matrix = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location(file.stem, file))
    spec.loader.exec_module(matrix)
    ran, most, table = [], [5], tmp_path / "matrix.csv"

    def cell(name, folder, recipe, run):
        if len(ran) == most[0]:
            raise InterruptedError
        ran.append(recipe)
        return len(ran) != 2, "0.0e+00, 3 replays, waits: none"

    arguments = ["--models", "mlp", "--parts", "train", "--keep", str(table)]
    monkeypatch.setattr(matrix, "cell", cell)
    with pytest.raises(InterruptedError):
        matrix.main(arguments)
    most[0] = 8
    assert matrix.main(arguments) == 1  # the second was wrong
    assert len(ran) == 8
    assert capsys.readouterr().out.endswith("8 cells, 1 wrong\n")
    assert len(table.read_text().splitlines()) == 9
    monkeypatch.setattr(matrix, "cell", None)
    assert matrix.main(arguments) == 1
    assert capsys.readouterr().out.endswith("8 cells, 1 wrong\n")
