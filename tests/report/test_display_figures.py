"""Figures show the numbers they are given, the same bytes every time, in files without a date."""

import re
from importlib import import_module

import numpy as np
import pytest
from unlearning_audit import stats
from unlearning_audit.evaluation import arrays
from unlearning_audit.report import style
from unlearning_audit.report.figures import axis, phi, roc
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import embed, sentences
from unlearning_audit.store import tables
from unlearning_audit.study.schema import Figure
from unlearning_audit.workflow import parameters

from display_cases import case, failed, figure, q, row, study, svg_of, words_of

STUDY = study()


def test_the_same_numbers_give_the_same_bytes_without_a_date(tmp_path):
    drawings = [figure("quality", *STUDY, ["plain"]) for _ in range(2)]
    first, second = (svg_of(drawing, tmp_path, str(i)) for i, drawing in enumerate(drawings))
    assert (first, "<dc:date>" in first) == (second, False)
    png = (tmp_path / "0.png").read_bytes()
    assert (png, b"Software" in png[:2000]) == ((tmp_path / "1.png").read_bytes(), False)
    assert "sd" in words_of(figure("pairs", *STUDY, ["plain"]))
    names = ("none", "finetune", "scrub", "ssd", "neggrad", "retrain (control)", "model damaged")
    assert [name for name in names if f">{name}<" not in first] == []


def test_titles_are_broken_and_labels_turned_where_a_panel_has_no_room():
    drawing, axes = style.panels(3, height=1.0, columns=2, width=2.0)
    axes[0].set_title("a title that is wider than its panel", loc="left")
    axes[0].set_xticks([0, 1], ["one long label", "another label"])
    style.fit(drawing)
    turned = {label.get_rotation() for label in axes[0].get_xticklabels()}
    assert ("\n" in axes[0].get_title(loc="left"), turned, drawing.axes[3].get_visible()) == (True, {30.0}, False)


def test_every_kind_of_figure_has_a_module_and_a_caption():
    for kind in Figure.model_fields["kind"].annotation.__args__:
        assert callable(import_module(f"unlearning_audit.report.figures.{kind}").draw)
        assert (parameters.CAPTIONS / f"{kind}.rst").read_text().strip()


# ---------------------------------------------------------------- style


@pytest.mark.parametrize("wished", [[0.5, 0.5, 0.5], [0.0, 0.01, 1.0], [0.99, 0.98, 0.97], [0.2, 0.8]])
def test_labels_are_moved_apart_in_order_and_no_further_than_needed(wished):
    moved = style.spread(wished, 0.1, 0.0, 1.0)
    ordered = [-0.1, *np.array(moved)[np.argsort(wished, kind="stable")], 1.1]
    assert (np.diff(ordered) >= 0.1 - 1e-12).all()
    free = [v for v in wished if all(abs(v - o) >= 0.2 for o in wished if o != v) and wished.count(v) == 1]
    assert all(v in moved for v in free)


# ---------------------------------------------------------------- quality and axis


def test_panels_mark_what_is_ideal_for_their_metric_and_share_limits_with_their_like():
    cases = [case(s, name) for s in ("a", "b", "c") for name in ("none", "retrain")]
    rows = [q(entry, 0.5 if entry["scenario"] == "a" else 0.9) for entry in cases[:4]]
    rows += [row(entry, "privacy_auc", 0.6, 0.55, 0.65, attack="ruli") for entry in cases[4:]]
    a, b, c = figure("quality", cases, rows).axes[:3]
    assert a.get_xlim() == b.get_xlim()
    assert a.get_xlim()[0] < 0.47 < 1 < a.get_xlim()[1]
    assert c.get_xlabel() == "privacy AUC"
    assert 0.5 < c.get_xlim()[0] < 0.55


@pytest.mark.parametrize(("half", "expected"), [(0.05, "retrain_control"), (0.3, "retrain")])
def test_the_yardstick_is_the_control_unless_it_is_measured_much_worse(half, expected):
    cases = [case("s", name) for name in ("retrain", "retrain_control")]
    rows = [q(cases[0], 0.7, 0.04), q(cases[1], 0.7, half)]
    assert sentences.reference(Numbers(rows, cases), ("s", ""))[0] == expected


def test_lines_along_an_axis_that_falls_are_named_at_their_right_ends():
    values = {"inf": (0.5, 0.9), "8": (0.7, 0.7), "2": (0.9, 0.5)}
    cases = [case("budget", name, {"epsilon": epsilon}) for epsilon in values for name in "ab"]
    rows = [q(entry, values[entry["axes"]["epsilon"]][entry["method"] == "b"]) for entry in cases]
    (panel,) = figure("axis", cases, rows, axis="epsilon").axes
    for line in panel.lines[:2]:
        assert list(line.get_xdata()) == sorted(line.get_xdata())
    assert {text.get_text(): text.xy[1] for text in panel.texts} == pytest.approx({"a": 0.5, "b": 0.9}, abs=0.05)


@pytest.mark.parametrize(
    ("labels", "positions"),
    [("1 2 4", [1, 2, 4]), ("10 100 1000", [1, 2, 3]), ("10 1000 inf", [1, 3, 5]), ("sgd adam", [0, 1]),
     ("8 inf", [0, 1])],
)  # fmt: skip
def test_axis_values_stand_by_size_by_logarithm_or_in_turn(labels, positions):
    assert axis.positions(labels.split()) == pytest.approx(positions)


# ---------------------------------------------------------------- ROC and phi


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One trained case: its files, scores of two attacks and logits; two target models and a shadow model."""
    folder, rng = tmp_path_factory.mktemp("case"), np.random.default_rng(0)
    n, models = 40, 3
    forget, heldout = (np.tile(np.arange(n) // 12 == part, (models, 1)) for part in (0, 1))
    y, zeros = np.arange(n) % 3, np.zeros(models, np.int64)
    names = {"data": "data.npz", "splits": "membership.npz", "unlearned": "logits.npz", "scores": "scores.parquet"}
    paths = {role: folder / f"{role}-0" / name for role, name in names.items()}
    arrays.Data(np.zeros((n, 2), np.float32), y, np.zeros(n, np.uint8), y, np.arange(n), 3).write(paths["data"])
    shadow = np.array([False, False, True])
    arrays.Membership(forget, forget, heldout, zeros, zeros, zeros, shadow).write(paths["splits"])
    logits = rng.normal(size=(models, n, 3)).astype(np.float32)
    arrays.Logits(logits, np.arange(n), y).write(paths["unlearned"])
    score = np.round(rng.normal(size=(2, 2, n)) + forget[:2] * np.array([0.5, 3.0])[:, None, None], 1)  # with ties
    attack, model, index = (part.ravel().astype(np.int32) for part in np.indices((2, 2, 24)))
    columns = {"attack": np.array(["weak", "strong"])[attack], "form": np.full(len(attack), "trained"), "model": model,
               "index": index, "role": np.where(index < 12, "forget", "heldout"), "score": score[attack, model, index],
               "decision": score[attack, model, index] > 1}  # fmt: skip
    tables.write_scores(paths["scores"], columns)
    files = {role: [str(path)] if role in ("splits", "unlearned") else str(path) for role, path in paths.items()}
    return files, score, logits


def test_the_curve_agrees_with_the_tables_and_the_strongest_attack_is_shown(trained):
    files, score, _ = trained
    weak, strong = roc.curves(files)
    assert (weak.attack, strong.attack, strong.area > weak.area) == ("weak/trained", "strong/trained", True)
    assert (strong.fpr[0], strong.tpr[-1]) == (pytest.approx(1 / 12), 1.0)
    cuts = [[((s[12:24] >= cut).mean(), (s[:12] >= cut).mean()) for cut in (*s[:24], np.inf)] for s in score[1]]
    want = [np.mean([max(tpr for fpr, tpr in of if fpr <= at + 1e-9) for of in cuts]) for at in strong.fpr]
    assert strong.tpr == pytest.approx(want)
    cases = [{**case("s", name), "files": files if name == "none" else {}} for name in ("none", "scrub", "ssd")]
    words = words_of(figure("roc", cases, [q(cases[0], 0.5), failed(cases[2], "method", "", "x")]))
    assert {"none: strong/trained", "scrub: no scores", "ssd: failed", "not resolved"} <= {*words}


def test_phi_is_that_of_forgotten_and_heldout_samples_of_target_models_in_a_panel_for_every_method(trained):
    files, _, logits = trained
    forget, heldout = phi.values(files)
    want = stats.phi(logits=logits[:2], y=np.arange(40) % 3)
    assert forget == pytest.approx(want[:, :12].ravel())
    assert heldout == pytest.approx(want[:, 12:24].ravel())
    cases = [{**case("s", name), "files": files} for name in ("none", "scrub", "ssd", "a", "b", "c")]
    rows = [*(q(entry, 0.5) for entry in cases[:-1]), failed(cases[-1], "method", "", "x")]
    drawing = figure("phi", cases, rows)
    titles = [panel.get_title("left") for panel in drawing.axes if panel.get_visible()]
    assert titles == ["none", "scrub", "ssd", "a", "b", "c"]
    assert (words_of(drawing).count("Q 0.50"), words_of(drawing).count("failed")) == (5, 1)


def test_phi_is_held_against_retrained_models_where_nothing_is_held_out():
    part, empty = np.array([0.0, 1.0, 2.0]), np.array([])
    pairs, label = phi._to_compare([(part, empty), None, (part + 1, empty)], ["none", "x", "retrain"])
    assert (label, pairs[1], list(pairs[0][1])) == ("forgotten, retrained", None, [1.0, 2.0, 3.0])
    assert phi._to_compare([(part, part)], ["none"]) == ([(part, part)], "held out")


# ---------------------------------------------------------------- embedding


def test_an_embedded_drawing_says_the_numbers_of_its_file(tmp_path):
    """Coordinates are shortened, and no number that is read."""
    drawing, (panel,) = style.panels(1, height=1.5)
    panel.plot([0.001, 0.004], [0.985, 0.995], "o")
    panel.text(0.002, 0.99, "sd 0.0498 <b> 0.005")
    kept = svg_of(drawing, tmp_path)
    shown = embed.drawing(tmp_path / "f.svg", "label")
    texts = [re.findall(r"<text[^>]*>([^<]*)</text>", svg) for svg in (kept, shown)]
    assert texts[1] == texts[0]
    assert "sd 0.0498 &lt;b&gt; 0.005" in texts[0]
    assert [bool(re.search(r'd="[^"]*\.\d{3}', svg)) for svg in (kept, shown)] == [True, False]


def test_drawings_on_one_page_share_no_id_and_follow_its_theme(tmp_path):
    ids = []
    for name in ("one", "two"):
        svg_of(figure("quality", *STUDY, ["plain"]), tmp_path, name)
        part = embed.drawing(tmp_path / f"{name}.svg", "label")
        ids.append(set(re.findall(r'\bid="([^"]+)"', part)))
        assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', part)) <= ids[-1] != set()
        assert (style.INK in part, "var(--ink)" in part, part[:19]) == (False, True, '<svg class="figure"')
        assert embed.width(part) == pytest.approx(style.HALF * 72, abs=1)
    assert not ids[0] & ids[1]


def test_a_method_keeps_its_colour_and_references_are_ink():
    colours = style.colours(["none", "scrub", "retrain", "ssd"])
    more = style.colours(["none", "scrub", "retrain", "ssd", "salun", "retrain_control"])
    assert {name: more[name] for name in colours} == colours
    assert colours["retrain"] == colours["retrain_control"] == style.INK
    assert len({colours["scrub"], colours["ssd"], colours["none"], colours["retrain"]}) == 4
