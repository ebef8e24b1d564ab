"""What was put among results by hand is marked, whichever stage it stands for."""

import json

import pytest
from unlearning_audit.stages import metrics


@pytest.mark.parametrize(("record", "marked"), [("{}", True), (None, False)])
def test_an_empty_record_is_marked_and_a_missing_one_is_a_test_of_ours(tmp_path, record, marked):
    path = tmp_path / "logits.npz"
    path.touch()
    if record is not None:
        (tmp_path / "spec.json").write_text(record)
    sentence = f"{path} was put there by hand: its spec.json is empty, so that nothing is known about it"
    assert (sentence in metrics.remarks([str(path)])) == marked


def test_what_a_record_remarks_is_told_once(tmp_path):
    from unlearning_audit.store.files import write_spec

    for name in ("a-0", "b-1"):
        (tmp_path / name).mkdir()
        write_spec(tmp_path / name / "spec.json", {"node": name, "remarks": ["mine.py: it reads x"]})
        assert json.loads((tmp_path / name / "spec.json").read_text())["remarks"]
    files = [str(tmp_path / name / "logits.npz") for name in ("a-0", "b-1")]
    assert metrics.remarks(files) == ["mine.py: it reads x"]


@pytest.mark.parametrize(("record", "count"), [("{}", 1), (None, 0)])
def test_numbers_that_were_put_there_are_doubted(tmp_path, record, count):
    from unlearning_audit.evaluation import rows
    from unlearning_audit.report.tables import union

    rows.write(tmp_path / "metrics.csv", [rows.Row("q", value=0.99)])
    if record is not None:
        (tmp_path / "spec.json").write_text(record)
    case = {"scenario": "main", "protocol": "swap", "method": "mine", "axes": {}, "plugin": "mine"}
    records = union.records([{**case, "metrics": str(tmp_path / "metrics.csv")}])
    doubts = [record.row.note for record in records if record.row.metric == "doubt"]
    assert len(doubts) == count
    assert all(note.startswith(f"{tmp_path / 'metrics.csv'} was put there by hand") for note in doubts)
