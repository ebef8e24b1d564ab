"""Figures show the numbers they are given, the same bytes every time, in files without a date."""

import re
from importlib import import_module

import numpy as np
import pytest
from sklearn.metrics import roc_curve
from unlearning_audit import stats
from unlearning_audit.evaluation import arrays
from unlearning_audit.report import style
from unlearning_audit.report.figures import axis, phi, roc
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import embed
from unlearning_audit.store import tables
from unlearning_audit.workflow import parameters

from display_cases import case, failed, q, row, study

CASES, ROWS = study()


def figure(kind, scenarios, cases=CASES, rows=ROWS, **fields):
    subset = [{"files": {}, **entry} for entry in cases if entry["scenario"] in scenarios]
    order = {
        "name": kind,
        "figure": {"kind": kind, "title": kind, "axis": None, "attack": ""} | fields,
        "methods": list(dict.fromkeys(entry["method"] for entry in cases)),
        "cases": subset,
    }
    return import_module(f"unlearning_audit.report.figures.{kind}").draw(Numbers(rows, subset), order)


def saved(drawing, folder, name="f"):
    folder.mkdir(exist_ok=True)
    paths = {kind: folder / f"{name}.{kind}" for kind in ("svg", "png")}
    style.save(drawing, **paths)
    return paths


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One trained case on disk: two target models and a shadow model, with scores of two attacks."""
    folder, rng = tmp_path_factory.mktemp("case"), np.random.default_rng(0)
    n, models = 40, 3
    forget, heldout = np.zeros((models, n), bool), np.zeros((models, n), bool)
    forget[:, :12], heldout[:, 12:24] = True, True
    data = arrays.Data(np.zeros((n, 2), np.float32), np.arange(n) % 3, np.zeros(n, np.uint8), np.arange(n) % 3,
                          np.arange(n), 3)  # fmt: skip
    shadow = np.array([False, False, True])
    member = arrays.Membership(forget, forget, heldout, *(np.zeros(models, np.int64) for _ in range(3)), shadow)
    logits = rng.normal(size=(models, n, 3)).astype(np.float32)
    kinds = {"data": "data.npz", "splits": "membership.npz", "unlearned": "logits.npz", "scores": "scores.parquet"}
    paths = {name: folder / f"{name}-0" / file for name, file in kinds.items()}
    data.write(paths["data"])
    member.write(paths["splits"])
    arrays.Logits(logits, np.arange(n), data.y).write(paths["unlearned"])
    score = rng.normal(size=(2, 2, n)) + forget[:2] * np.array([0.5, 3.0])[:, None, None]
    columns = {name: [] for name in ("attack", "form", "model", "index", "role", "score", "decision")}
    for a, attack in enumerate(("weak", "strong")):
        model, index = np.nonzero((forget | heldout)[:2])
        values = (np.full(len(model), attack), np.full(len(model), "trained"), model.astype(np.int32),
                  index.astype(np.int32), np.where(forget[model, index], "forget", "heldout"), score[a][model, index],
                  score[a][model, index] > 1)  # fmt: skip
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    tables.write_scores(paths["scores"], {name: np.concatenate(parts) for name, parts in columns.items()})
    names = {name: str(path) for name, path in paths.items()}
    return {**names, "splits": [names["splits"]], "unlearned": [names["unlearned"]], "_score": score, "_logits": logits}


# ---------------------------------------------------------------- bytes


@pytest.mark.parametrize(
    ("kind", "scenarios", "fields"),
    [("quality", ["plain"], {}), ("pairs", ["plain"], {}), ("axis", ["budget"], {"axis": "epsilon"})],
)
def test_the_same_numbers_give_the_same_bytes_without_a_date(tmp_path, kind, scenarios, fields):
    first = saved(figure(kind, scenarios, **fields), tmp_path / "1")
    second = saved(figure(kind, scenarios, **fields), tmp_path / "2")
    for ending in first:
        assert first[ending].read_bytes() == second[ending].read_bytes()
    text = first["svg"].read_text()
    assert "<dc:date>" not in text
    assert b"Software" not in first["png"].read_bytes()[:2000]
    assert figure(kind, scenarios, **fields).get_figwidth() in (style.HALF, style.WHOLE)


def test_every_method_is_named_and_what_failed_says_so(tmp_path):
    text = saved(figure("quality", ["plain"]), tmp_path)["svg"].read_text()
    for name in ("none", "finetune", "scrub", "ssd", "neggrad", "retrain (control)", "model damaged"):
        assert f">{name}<" in text
    text = saved(figure("pairs", ["plain"]), tmp_path)["svg"].read_text()
    assert ">model damaged<" in text


# ---------------------------------------------------------------- style


def test_a_method_keeps_its_colour_and_references_are_ink():
    colours = style.colours(["none", "scrub", "retrain", "ssd"])
    more = style.colours(["none", "scrub", "retrain", "ssd", "salun", "retrain_control"])
    assert {name: more[name] for name in colours} == colours
    assert colours["retrain"] == colours["retrain_control"] == style.INK
    assert len({colours["scrub"], colours["ssd"], colours["none"], colours["retrain"]}) == 4


@pytest.mark.parametrize("sight", ["normal", "protan", "deutan"])
def test_the_palette_is_told_apart_without_red_or_green_cones(sight):
    # Viénot, Brettel and Mollon (1999): what dichromats see of linear light
    cones = {
        "normal": np.eye(3),
        "protan": np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
        "deutan": np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
    }[sight]
    colours = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in style.PALETTE[:6]])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4) @ cones.T
    lightness = np.clip(linear, 0, 1) ** (1 / 2.2)
    distance = np.linalg.norm(lightness[:, None] - lightness[None], axis=-1)
    assert distance[np.triu_indices(6, 1)].min() > 0.1


@pytest.mark.parametrize("wished", [[0.5, 0.5, 0.5], [0.0, 0.01, 1.0], [0.99, 0.98, 0.97], [0.2, 0.8]])
def test_labels_are_moved_apart_in_order_and_no_further_than_needed(wished):
    moved = style.spread(wished, 0.1, 0.0, 1.0)
    order = np.argsort(wished, kind="stable")
    assert (np.diff(np.array(moved)[order]) >= 0.1 - 1e-12).all()
    assert min(moved) >= -1e-12
    assert max(moved) <= 1 + 1e-12
    free = [v for v in wished if all(abs(v - o) >= 0.2 for o in wished if o != v) and wished.count(v) == 1]
    assert all(v in moved for v in free)


# ---------------------------------------------------------------- axis


def test_lines_along_an_axis_that_falls_are_named_at_their_right_ends():
    cases = [case("budget", name, {"epsilon": epsilon}) for epsilon in ("inf", "8", "2") for name in ("a", "b")]
    values = {"inf": (0.5, 0.9), "8": (0.7, 0.7), "2": (0.9, 0.5)}
    rows = [q(entry, values[entry["axes"]["epsilon"]][entry["method"] == "b"]) for entry in cases]
    (panel,) = figure("axis", ["budget"], cases, rows, axis="epsilon").axes
    for line in panel.lines[:2]:
        assert list(line.get_xdata()) == sorted(line.get_xdata())
    heights = {text.get_text(): text.xy[1] for text in panel.texts}
    assert heights["a"] == pytest.approx(0.5, abs=0.05)
    assert heights["b"] == pytest.approx(0.9, abs=0.05)


def test_axis_values_stand_by_size_by_logarithm_or_in_turn():
    assert axis.positions(["1", "2", "4"]) == [1.0, 2.0, 4.0]
    assert axis.positions(["10", "100", "1000"]) == pytest.approx([1.0, 2.0, 3.0])
    assert axis.positions(["10", "1000", "inf"]) == pytest.approx([1.0, 3.0, 5.0])
    assert axis.positions(["sgd", "adam"]) == [0.0, 1.0]
    assert axis.positions(["8", "inf"]) == [0.0, 1.0]


# ---------------------------------------------------------------- ROC


def slow_tpr(positive, negative, fpr):
    cuts = np.append(np.unique(np.append(positive, negative)), -np.inf)
    return max((positive > cut).mean() for cut in cuts if (negative > cut).mean() <= fpr + 1e-12)


def test_rates_are_the_largest_tpr_of_all_cuts_with_ties():
    rng = np.random.default_rng(1)
    positive, negative = rng.integers(0, 9, 30).astype(float), rng.integers(0, 7, 25).astype(float)
    fpr = np.array([0.04, 0.1, 0.2, 0.5, 0.99, 1.0])
    rates = roc.rates(positive, negative, np.ones(30), np.ones(25), fpr)
    assert rates == pytest.approx([slow_tpr(positive, negative, x) for x in fpr])


def test_the_curve_agrees_with_the_tables_and_the_strongest_attack_is_shown(files):
    weak, strong = roc.curves({name: files[name] for name in ("data", "splits", "scores")})
    assert (weak.attack, strong.attack) == ("weak/trained", "strong/trained")
    assert strong.area > weak.area
    assert strong.fpr[0] == pytest.approx(1 / 12)
    assert strong.tpr[-1] == 1.0
    columns, positive = np.r_[0:24], np.arange(24) < 12
    curves = [roc_curve(positive, s[columns], drop_intermediate=False) for s in files["_score"][1]]
    at = [tpr[fpr <= strong.fpr[60]].max() for fpr, tpr, _ in curves]
    assert strong.tpr[60] == pytest.approx(np.mean(at))


def test_the_roc_names_what_it_shows_and_what_it_cannot(tmp_path, files):
    cases = [{**case("s", name), "files": files if name == "none" else {}} for name in ("none", "scrub", "ssd")]
    rows = [q(cases[0], 0.5), failed(cases[2], "method", "", "x")]
    text = saved(figure("roc", ["s"], cases, rows), tmp_path)["svg"].read_text()
    for label in ("none: strong/trained", "scrub: no scores", "ssd: failed", "not resolved"):
        assert f">{label}<" in text


# ---------------------------------------------------------------- phi


def test_phi_is_that_of_forgotten_and_heldout_samples_of_target_models(files):
    forget, heldout = phi.values(files)
    want = stats.phi(logits=files["_logits"][:2], y=np.arange(40) % 3)
    assert forget == pytest.approx(want[:, :12].ravel())
    assert heldout == pytest.approx(want[:, 12:24].ravel())


def test_phi_has_a_panel_for_every_method(tmp_path, files):
    cases = [{**case("s", name), "files": files} for name in ("none", "scrub", "ssd", "a", "b", "c")]
    rows = [*(q(entry, 0.5) for entry in cases[:-1]), failed(cases[-1], "method", "", "x")]
    drawing = figure("phi", ["s"], cases, rows)
    titles = [panel.get_title("left") for panel in drawing.axes if panel.get_visible()]
    assert titles == ["none", "scrub", "ssd", "a", "b", "c"]
    text = saved(drawing, tmp_path)["svg"].read_text()
    assert text.count(">Q 0.50<") == 5
    assert text.count(">failed<") == 1


def test_phi_is_held_against_retrained_models_where_nothing_is_held_out(tmp_path, files):
    part, empty = np.array([0.0, 1.0, 2.0]), np.array([])
    pairs, label = phi._against([(part, empty), None, (part + 1, empty)], ["none", "x", "retrain"])
    assert label == "forgotten, retrained"
    assert pairs[1] is None
    assert (pairs[0][1] == part + 1).all()
    assert phi._against([(part, part)], ["none"]) == ([(part, part)], "held out")


def test_panels_mark_what_is_ideal_for_their_metric_and_share_limits_with_their_like():
    cases = [case(s, name) for s in ("a", "b", "c") for name in ("none", "retrain")]
    rows = [q(entry, 0.5 if entry["scenario"] == "a" else 0.9) for entry in cases[:4]]
    rows += [row(entry, "privacy_auc", 0.6, 0.55, 0.65, attack="ruli") for entry in cases[4:]]
    a, b, c = figure("quality", ["a", "b", "c"], cases, rows).axes[:3]
    assert a.get_xlim() == b.get_xlim()
    assert a.get_xlim()[0] < 0.47 < 1 < a.get_xlim()[1]
    assert c.get_xlabel() == "privacy AUC"
    assert 0.5 < c.get_xlim()[0] < 0.55


# ---------------------------------------------------------------- embedding


def test_an_embedded_drawing_says_the_numbers_of_its_file(tmp_path):
    """Coordinates are shortened, and no number that is read."""
    drawing, (axis,) = style.panels(1, height=1.5)
    axis.plot([0.001, 0.004], [0.985, 0.995], "o")
    axis.text(0.002, 0.99, "sd 0.0498 <b> 0.005")
    path = saved(drawing, tmp_path)["svg"]
    kept, shown = path.read_text(), embed.drawing(path, "label")
    texts = [re.findall(r"<text[^>]*>([^<]*)</text>", svg) for svg in (kept, shown)]
    assert "sd 0.0498 &lt;b&gt; 0.005" in texts[0]
    assert texts[1] == texts[0]
    assert len(shown) < len(kept)
    assert re.search(r'd="[^"]*\.\d{3}', kept)
    assert not re.search(r'd="[^"]*\.\d{3}', shown)


def test_drawings_on_one_page_share_no_id_and_follow_its_theme(tmp_path):
    paths = [saved(figure("quality", ["plain"]), tmp_path, name)["svg"] for name in ("one", "two")]
    parts = [embed.drawing(path, "label") for path in paths]
    ids = [set(re.findall(r'\bid="([^"]+)"', part)) for part in parts]
    assert ids[0]
    assert not ids[0] & ids[1]
    for part, own_ids in zip(parts, ids, strict=True):
        used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', part))
        assert used <= own_ids
        assert style.INK not in part
        assert "var(--ink)" in part
        assert part.startswith('<svg class="figure"')
    assert embed.width(parts[0]) == pytest.approx(style.HALF * 72, abs=1)


def test_every_kind_of_figure_has_a_module_and_a_caption():
    from unlearning_audit.study.schema import Figure

    for kind in Figure.model_fields["kind"].annotation.__args__:
        assert callable(import_module(f"unlearning_audit.report.figures.{kind}").draw)
        assert parameters.caption(kind).strip()
