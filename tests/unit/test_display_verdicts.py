"""Sentences, controls, the headline, the ledger and the union say what the numbers say, and nothing more."""

import csv
import math

import numpy as np
import pytest

from display_cases import NAN, REASON, case, q, row, study
from unlearning.artifacts import arrays, tables
from unlearning.artifacts.files import write_spec
from unlearning.display.lookup import Cell, Numbers
from unlearning.display.page import sentences
from unlearning.display.tables import cost, headline, union

CASES, ROWS = study()
NUMBERS = Numbers(ROWS, CASES)
ORDER = {"name": "headline", "title": "Study s", "table": None, "cases": CASES, "caption": ""}


def one_scenario(**values):
    """Numbers of one scenario: method=(value, half width)."""
    cases = [case("s", name) for name in values]
    return Numbers([q(one, *value) for one, value in zip(cases, values.values(), strict=True)], cases)


# ---------------------------------------------------------------- sentences


@pytest.mark.parametrize(
    ("value", "text", "tone"),
    [
        (0.50, "worse than doing nothing", "bad"),
        (0.62, "below the retrain control; it cannot be told from none", "bad"),
        (0.80, "better than none, yet below the retrain control", ""),
        (0.95, "better than none; it cannot be told from the retrain control", "good"),
    ],
)
def test_a_method_is_placed_between_none_and_retraining(value, text, tone):
    numbers = one_scenario(none=(0.6, 0.03), retrain=(0.98, 0.02), x=(value, 0.03), retrain_control=(0.97, 0.03))
    (said,) = sentences.methods(numbers)
    assert (said.subject, said.text, said.tone) == ("x", text, tone)
    assert said.value == f"Q {value:.2f} [{value - 0.03:.2f}, {value + 0.03:.2f}]"


def test_wide_intervals_and_scores_above_retraining_are_not_called_good():
    wide = one_scenario(none=(0.8, 0.1), retrain=(0.95, 0.03), x=(0.9, 0.1))
    assert sentences.methods(wide)[0].text.startswith("may be as good as retraining or as poor as none")
    above = one_scenario(none=(0.6, 0.03), retrain=(0.8, 0.03), x=(0.95, 0.03))
    assert sentences.methods(above)[0].text.startswith("above retraining, which should not be possible")
    assert {v.tone for v in (*sentences.methods(wide), *sentences.methods(above))} == {""}


@pytest.mark.parametrize(("ground", "why"), [(0.95, "cannot be told from"), (0.999, "reads better than")])
def test_there_is_no_verdict_where_none_itself_looks_forgotten(ground, why):
    numbers = one_scenario(none=(ground, 0.001), retrain=(0.95, 0.03), x=(0.5, 0.03))
    (said,) = sentences.methods(numbers)
    assert (said.text, said.tone) == (f"no verdict, for none itself {why} retraining", "")


def test_a_lower_number_is_better_where_the_metric_says_so():
    numbers = one_scenario(none=(0.6, 0.03), x=(0.55, 0.01))
    low, high = (numbers.cell(c, "q") for c in reversed(numbers.cases))
    assert sentences.compare("privacy_auc", low, high) == "better"
    assert sentences.compare("q", low, high) == "worse"


def test_no_interval_no_comparison():
    cases = [case("s", name) for name in ("none", "retrain", "x")]
    numbers = Numbers([row(c, "q", 0.5, attack="paper") for c in cases], cases)
    assert sentences.methods(numbers)[0].text == "without an interval that could be compared"


def test_what_failed_or_did_nothing_is_never_praised():
    said = {v.subject: v for v in sentences.methods(NUMBERS) if v.place[0] == "plain"}
    assert said["neggrad"].text == "failed, so there is no number"
    assert said["ssd"].text == "changed nothing, its models are those it was given"
    assert {said[name].tone for name in ("neggrad", "ssd")} == {"bad"}


# ---------------------------------------------------------------- controls


def test_controls_hold_where_they_should():
    found = {v.subject: v.tone for v in sentences.controls(NUMBERS) if v.place[0] == "plain"}
    assert [found[name] for name in sentences.CHECKS] == ["good", "good", "good"]
    assert [v.text for v in sentences.controls(NUMBERS)[-2:]] == [
        "ssd returned exactly the models it was given", f"neggrad failed: {REASON}"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "check"),
    [
        ({"none": (0.6, 0.03), "retrain": (0.9, 0.03), "retrain_control": (0.9, 0.03)}, "retrain is perfect"),
        ({"none": (0.6, 0.03), "retrain": (0.99, 0.02), "retrain_control": (0.9, 0.03)}, "two retrainings agree"),
        ({"none": (0.96, 0.03), "retrain": (0.99, 0.02), "retrain_control": (0.98, 0.02)}, "none is found out"),
    ],
)
def test_each_control_fails_alone(values, check):
    tones = {v.subject: v.tone for v in sentences.controls(one_scenario(**values))}
    assert tones == {name: "bad" if name == check else "good" for name in sentences.CHECKS}


def test_what_cannot_be_checked_is_not_called_good():
    numbers = one_scenario(x=(0.9, 0.03))
    assert {v.tone for v in sentences.controls(numbers)} == {""}
    confused = [case("s", name, protocol="interclass_confusion") for name in ("none", "retrain")]
    rows = [
        row(one, "ic_score", value, value - 0.02, value + 0.02) for one, value in zip(confused, (0.5, 0.9), strict=True)
    ]
    perfect, _, power = sentences.controls(Numbers(rows, confused))
    assert perfect.tone == ""
    assert power.tone == "good"


# ---------------------------------------------------------------- headline


def test_the_headline_fits_a_terminal_and_shows_every_method_once_per_scenario():
    text = headline.text(NUMBERS, ORDER)
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[1] == headline.READ
    blocks = text.split("\n\n")
    assert [line.split("  ")[0] for line in blocks[1].splitlines()[1:8]] == [
        "none", "finetune", "scrub", f"ssd {headline.UNCHANGED}", f"neggrad {headline.FAILED} (a)", "retrain",
        "retrain (control)",
    ]  # fmt: skip
    assert blocks[2].splitlines()[0].split("  ")[0] == "budget: Q at epsilon ="
    assert "0.90 [0.87, 0.93]" in blocks[2]


@pytest.mark.parametrize("count", [4, 9, 30])
def test_the_headline_keeps_its_width_along_a_long_axis(count):
    cases = [case("s", name, {"size": str(10**i)}) for i in range(count) for name in ("none", "scrub")]
    text = headline.text(Numbers([q(one, 0.5) for one in cases], cases), ORDER)
    assert max(map(len, text.splitlines())) <= 100
    assert ("…" in text) is (count > 9)


def test_the_headline_has_one_table_per_protocol_with_the_numbers_that_it_gives():
    confused = case("c", "none", protocol="interclass_confusion")
    numbers = Numbers([*ROWS, row(confused, "ic_score", 0.5, 0.4, 0.6)], [*CASES, confused])
    swap, confusion = headline.sheets(numbers, ORDER)
    assert [head.label for head in swap.heads] == ["Q", "test"]
    assert [head.label for head in confusion.heads] == ["IC score"]
    failed = next(line for line in swap.lines if line.label == "neggrad")
    assert failed.notes == (headline.FAILED, REASON)
    assert {cell.text for cell in failed.cells} == {"failed"}
    assert {record["note"] for record in swap.records if record["method"] == "neggrad"} == {f"failed; {REASON}"}


# ---------------------------------------------------------------- ledger


def spec(path, seconds, models=0, unlearn=None, device="cpu"):
    facts = {"seconds": {"function": seconds, "process": seconds / 2}, "peak_memory_mib": 100, "models": models,
             "machine": {"device": device}}  # fmt: skip
    write_spec(path, facts | ({} if unlearn is None else {"unlearn_seconds": unlearn}))
    return str(path)


def test_unlearning_is_compared_with_retraining_model_by_model(tmp_path):
    wanted = [("train", "t-0", 9.0, 4, None), ("unlearn", "r-1", 8.0, 4, 8.0), ("unlearn", "f-2", 1.0, 2, 0.5),
              ("unlearn", "f-3", 1.0, 2, 0.5)]  # fmt: skip
    nodes = [
        {"stage": stage, "node": name, "spec": spec(tmp_path / stage / name / "spec.json", seconds, models, unlearn)}
        for stage, name, seconds, models, unlearn in wanted
    ]
    rows = cost.rows(nodes)
    cases = [
        {**case("s", method), "specs": [nodes[i]["spec"] for i in which]}
        for method, which in (("none", [0]), ("retrain", [1]), ("finetune", [2, 3]))
    ]
    assert cost.ratios(rows, cases) == {
        ("s", "", "none"): (0.0, 0.0), ("s", "", "retrain"): (2.0, 1.0), ("s", "", "finetune"): (0.25, 0.125)
    }  # fmt: skip
    found = cost.stages(rows)
    assert (found["unlearn"]["jobs"], found["unlearn"]["models"], found["unlearn"]["seconds"]) == (3, 8, 10.0)
    stages, methods = cost.sheets(rows, {"cases": cases})
    assert [cell.text for cell in stages.footer[0].cells][:3] == ["4", "", "19 s"]
    assert [line.cells[0].text for line in methods.lines] == ["0.00 ×", "0.12 ×", "1.00 ×"]
    tables.write_rows(tmp_path / "cost.csv", rows, cost.COLUMNS)
    assert cost.read(tmp_path / "cost.csv") == rows


def test_without_retraining_there_is_no_ratio(tmp_path):
    node = {"stage": "unlearn", "node": "f-2", "spec": spec(tmp_path / "unlearn" / "f-2" / "spec.json", 1.0, 2, 0.5)}
    (ratio,) = cost.ratios(cost.rows([node]), [{**case("s", "finetune"), "specs": [node["spec"]]}]).values()
    assert ratio[0] == 0.25
    assert math.isnan(ratio[1])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.213, "0.21 s"), (14.2, "14 s"), (89, "89 s"), (210, "3.5 min"), (7600, "2.1 h")],
)
def test_durations(seconds, text):
    assert cost.duration(seconds) == text


# ---------------------------------------------------------------- union


def logits(path, values):
    arrays.Logits(np.asarray(values, np.float32), np.arange(2), np.array([0, 1])).write(path)
    return str(path)


def test_the_union_keeps_study_order_and_puts_the_axis_before_the_rows_own_setting(tmp_path):
    before = logits(tmp_path / "a-1" / "logits.npz", [[[1, 2], [3, 4]]])
    same = logits(tmp_path / "b-2" / "logits.npz", [[[1, 2], [3, 4]]])
    other = logits(tmp_path / "c-3" / "logits.npz", [[[1, 2], [3, 5]]])
    cases = []
    for method, after in (("scrub", other), ("ssd", same), ("none", before)):
        path = tmp_path / method / "metrics.csv"
        tables.write_rows(path, [{"metric": "accuracy", "setting": "role=test", "value": 0.1 + 0.2, "n": 3}])
        one = case("s", method, {"epsilon": "8"})
        cases.append({**one, "metrics": str(path), "originals": [before], "unlearned": [after]})
    rows = union.rows("study", cases)
    assert [(r["method"], r["metric"]) for r in rows] == [
        ("scrub", "accuracy"), ("ssd", "accuracy"), ("ssd", "unchanged"), ("none", "accuracy")
    ]  # fmt: skip
    assert {r["setting"] for r in rows} == {"epsilon=8;role=test", "epsilon=8"}
    assert rows[2]["value"] == 1.0
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    for path in (first, second):
        tables.write_rows(path, union.rows("study", cases), tables.UNION_COLUMNS)
    assert first.read_bytes() == second.read_bytes()
    assert float(next(csv.DictReader(first.open()))["value"]) == 0.1 + 0.2


def test_one_changed_batch_is_enough_for_a_share_below_one(tmp_path):
    files = [logits(tmp_path / f"{i}-1" / "logits.npz", [[[i, 2], [3, 4]]]) for i in range(3)]
    path = tmp_path / "metrics.csv"
    tables.write_rows(path, [])
    one = {**case("s", "ssd"), "metrics": str(path), "originals": files[:2], "unlearned": [files[0], files[2]]}
    (found,) = union.rows("study", [one])
    assert (found["metric"], found["value"], found["n"]) == ("unchanged", 0.5, 2)


def test_diverged_logits_are_no_obstacle_and_damaged_files_are_named(tmp_path):
    before = logits(tmp_path / "a-1" / "logits.npz", [[[1, 2], [3, 4]]])
    after = logits(tmp_path / "b-2" / "logits.npz", [[[NAN, 2], [3, 4]]])
    path = tmp_path / "metrics.csv"
    tables.write_rows(path, [{"metric": "failed", "value": NAN, "note": "diverged"}])
    one = {**case("s", "neggrad"), "metrics": str(path), "originals": [before], "unlearned": [after]}
    assert [r["metric"] for r in union.rows("study", [one])] == ["failed"]
    (tmp_path / "b-2" / "logits.npz").write_bytes(b"no archive")
    with pytest.raises(arrays.ArtifactError, match=r"b-2/logits.npz"):
        union.rows("study", [one])


@pytest.mark.parametrize(("control", "chosen"), [((0.7, 1.0), "retrain_control"), ((0.4, 1.0), "retrain")])
def test_the_yardstick_is_the_control_unless_it_is_measured_much_worse(control, chosen):
    cells = {"retrain_control": Cell(0.9, *control), "retrain": Cell(0.9, 0.75, 1.0)}
    assert sentences._yardstick(cells) == (chosen, cells[chosen])


# ---------------------------------------------------------------- broken models


def broken(low, high, *, method="x", measured="gap"):
    """Numbers in which ``method`` reads like retraining and lacks ``low`` to ``high`` of its test accuracy."""
    cases = [case("s", name) for name in ("none", "retrain", method)]
    rows = [q(one, value, 0.02) for one, value in zip(cases, (0.6, 0.97, 0.97), strict=True)]
    if measured == "gap":
        rows.append(row(cases[2], "accuracy_gap", (low + high) / 2, low, high, setting="role=test"))
        rows.append(row(cases[2], "accuracy_gap", 0.9, 0.9, 0.9, setting="role=forget"))
    else:
        rows.append(row(cases[1], "accuracy", 0.9, 0.88, 0.92, setting="role=test"))
        rows.append(row(cases[2], "accuracy", 0.9 - (low + high) / 2, 0.92 - high, 0.88 - low, setting="role=test"))
    return Numbers(rows, cases)


@pytest.mark.parametrize("measured", ["gap", "accuracies"])
def test_who_forgets_by_breaking_the_model_is_not_praised(measured):
    numbers = broken(0.12, 0.2, measured=measured)
    (said,) = sentences.methods(numbers)
    text = "forgot by breaking the model: test accuracy is 16 [12, 20] points below that of retraining"
    assert (said.text, said.tone) == (text, "bad")
    shown = headline.sheet(numbers, numbers.cases)
    assert [line.notes for line in shown.lines] == [(), ("§",), ()]
    assert dict(shown.explained())["§"].startswith("broken: test accuracy is at least 10 points below")


@pytest.mark.parametrize("measured", ["gap", "accuracies"])
def test_a_loss_that_may_be_small_is_not_called_a_broken_model(measured):
    (said,) = sentences.methods(broken(0.05, 0.3, measured=measured))
    assert (said.text, said.tone) == ("better than none; it cannot be told from retraining", "good")


def test_references_are_what_others_are_held_against_and_never_broken():
    numbers = broken(0.5, 0.6, method="retrain_control")
    assert [sentences.lost(numbers, one) for one in numbers.cases] == [None] * 3


# ---------------------------------------------------------------- columns


def test_a_column_without_any_number_is_left_out_and_one_with_some_is_kept():
    cases = [case("s", name) for name in ("none", "retrain")]
    rows = [q(one, 0.9) for one in cases] + [row(one, "mia_score", NAN, attack="loss", note="why") for one in cases]
    rows += [row(cases[0], "accuracy", 0.9, setting="role=test"), row(cases[1], "accuracy", NAN, setting="role=test")]
    assert [head.label for head in headline.sheet(Numbers(rows, cases), cases).heads] == ["Q", "test"]
    empty = [row(one, "q", NAN, attack="paper", note="why") for one in cases]
    shown = headline.sheet(Numbers(empty, cases), cases)
    assert [head.label for head in shown.heads] == ["Q"]
    assert "why" in dict(shown.explained()).values()


def test_what_pairs_are_asked_besides_stands_elsewhere():
    cases = [case("s", name, protocol=protocol) for name, protocol in (("none", "swap"), ("retrain", "swap"))]
    rows = [q(one, 0.9) for one in cases] + [row(one, "privacy_auc", 0.6, attack="ruli") for one in cases]
    assert [head.label for head in headline.sheet(Numbers(rows, cases), cases).heads] == ["Q"]
    outside = [{**one, "protocol": "external"} for one in cases]
    assert [head.label for head in headline.sheet(Numbers(rows, outside), outside).heads] == ["Q", "privacy AUC"]


# ---------------------------------------------------------------- time


def test_who_takes_more_than_a_fifth_of_retraining_is_marked_and_no_score_knows(tmp_path):
    seconds = {"retrain": 10.0, "quick": 1.9, "slow": 2.1, "retrain_control": 10.0}
    nodes = [
        {
            "stage": "unlearn",
            "node": f"{name}-1",
            "spec": spec(tmp_path / "unlearn" / f"{name}-1" / "spec.json", 9, 1, s),
        }
        for name, s in seconds.items()
    ]
    cases = [{**case("s", name), "specs": [node["spec"]]} for name, node in zip(seconds, nodes, strict=True)]
    sheet = cost.sheets(cost.rows(nodes), {"cases": cases})[1]
    cells = {line.label: line.cells[0] for line in sheet.lines}
    assert (cells["slow"].text, cells["slow"].tone, cells["slow"].notes) == ("0.21 ×", "bad", (cost.SLOW,))
    assert "20% of retraining" in cost.SLOW
    assert [cells[name].notes for name in ("quick", "retrain", "retrain (control)")] == [(), (), ()]
    flags = {record["method"]: (record["to_retrain"], record["over_limit"]) for record in sheet.records}
    assert flags["slow"] == (pytest.approx(0.21), "yes")
    assert {flags[name][1] for name in ("quick", "retrain", "retrain_control")} == {"no"}


def test_seconds_of_a_metric_are_means_over_the_methods_of_a_scenario(tmp_path):
    nodes, cases = [], []
    for i, (name, swap) in enumerate((("none", 1.0), ("retrain", 3.0))):
        paths = {stage: tmp_path / stage / f"{name}-{i}" / "spec.json" for stage in ("unlearn", "attack", "metrics")}
        write_spec(paths["unlearn"], {"models": 1, "unlearn_seconds": 1.0})
        write_spec(paths["attack"], {"seconds": {"function": 5.0 + i, "process": 5.0}})
        write_spec(paths["metrics"], {"seconds": {"function": 9.0, "process": 9.0}, "seconds_of": {"swap": swap}})
        nodes += [{"stage": stage, "node": path.parent.name, "spec": str(path)} for stage, path in paths.items()]
        judged = {stage: str(paths[stage]) for stage in ("attack", "metrics")}
        cases.append({**case("s", name), "specs": [str(paths["unlearn"])], "judged": judged})
    rows = cost.rows(nodes)
    tables.write_rows(tmp_path / "cost.csv", rows, cost.COLUMNS)
    assert cost.read(tmp_path / "cost.csv") == rows
    *_, measured = cost.sheets(rows, {"cases": cases})
    assert {line.label: line.cells[0].text for line in measured.lines} == {"attacks": "5.5 s", "swap": "2 s"}
    assert {record["metric"]: record["seconds"] for record in measured.records} == {"attacks": 5.5, "swap": 2.0}
