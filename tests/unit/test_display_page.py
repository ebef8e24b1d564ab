"""The page holds everything, needs nothing from elsewhere, and lets no text of a study become markup."""

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import escape

from decision_cases import GOOD, made, written
from decision_cases import rows as rows_of
from display_cases import REASON, case, q, study
from unlearning.artifacts import tables
from unlearning.artifacts.files import write_json, write_spec
from unlearning.comparisons.meta import evaluate
from unlearning.display import naming, style
from unlearning.display.decisions import Decisions
from unlearning.display.figures import _meta, _resolution, _verdicts, quality
from unlearning.display.lookup import Numbers
from unlearning.display.page import dag, page
from unlearning.display.tables import cost, formats, grid, verdicts
from unlearning.display.tables import meta as worth
from unlearning.workflow import parameters

ROOT = Path(__file__).resolve().parents[2]


NASTY = "<img src=x onerror=alert(1)>&\"'{{ 7*7 }}"


VOID = {"meta", "path", "rect", "use", "br", "img", "link", "input", "hr"}


class Strict(HTMLParser):
    """Collects tags, attributes and text, and insists that every tag is closed in turn."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.text = [], set(), [], [], []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        known = dict(attrs)
        self.ids += [known["id"]] if "id" in known else []
        self.links += [v for k, v in attrs if k in ("href", "src", "xlink:href", "action", "data")]
        assert not [k for k, _ in attrs if k.startswith("on")]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style",):
            self.text.append(data)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """The page of the study made by hand, with one method and one scenario of nasty names."""
    folder = tmp_path_factory.mktemp("page")
    cases, rows = study()
    cases.append(case(NASTY, NASTY.lower()))
    rows.append({**q(cases[-1], 0.5), "note": NASTY})
    for one in cases:
        one |= {"metrics": f"results/metrics/{one['scenario']}/metrics.csv", "scores": ""}
    tables.write_rows(folder / "metrics.csv", rows, tables.UNION_COLUMNS)
    nodes = []
    for stage, models in (("train", 2), ("unlearn", 2), ("metrics", 0)):
        path = folder / stage / "x-0123456789" / "spec.json"
        write_spec(path, {"seconds": {"function": 61.0, "process": 5.0}, "models": models, "unlearn_seconds": 3.0,
                          "packages": {"numpy": NASTY}, "python": "3.11"})  # fmt: skip
        nodes.append({"stage": stage, "node": path.parent.name, "spec": str(path)})
    tables.write_rows(folder / "cost.csv", cost.rows(nodes), cost.COLUMNS)
    wish = {"title": NASTY, "metric": "q", "scenarios": ["plain", NASTY], "columns": "scenario", "layout": "wide",
            "attack": "", "setting": "", "footer": ["accuracy"], "published": None}  # fmt: skip
    head = {"name": "headline", "title": "Study s", "table": None, "cases": cases, "caption": "One.\n\nTwo."}
    table = {"name": "t1", "table": wish, "cases": cases[:7] + cases[-1:], "caption": ""}
    figure = {"name": "f1", "figure": {"kind": "quality", "title": NASTY, "attack": ""}, "caption": NASTY,
              "cases": cases[:7], "methods": [one["method"] for one in cases]}  # fmt: skip
    numbers = Numbers(rows, cases)
    files = {kind: folder / f"f1.{kind}" for kind in ("svg", "png")}
    style.save(quality.draw(numbers.narrowed(cases[:7]), figure), **files)
    for order in (head, table):
        some = {kind: folder / f"{order['name']}.{kind}" for kind in ("csv", "md", "tex")}
        formats.write(grid.sheets_of(numbers.narrowed(order["cases"]), order, ""), **some)
        files |= {f"{order['name']}.{kind}": path for kind, path in some.items()}
    some = {kind: folder / f"meta.{kind}" for kind in ("csv", "md", "tex", "svg", "png")}
    found = evaluate(rows, naming.quantities().values())
    formats.write(worth.sheets(found), **{kind: some[kind] for kind in ("csv", "md", "tex")})
    style.save(_meta.draw(found), **{kind: some[kind] for kind in ("svg", "png")})
    files |= {f"meta.{kind}": path for kind, path in some.items()}
    judged = made(("plain", ""), *GOOD, rows_of("scrub", "told", 0.2, share=0.5))
    for i, name in enumerate(("verdicts", "ranks", "resolution")):
        some = {kind: folder / f"{name}.{kind}" for kind in ("csv", "md", "tex")}
        sheet = (verdicts.verdicts, verdicts.ranks, verdicts.resolution)[i](judged, "s")
        formats.write([sheet], **some)
        files |= {f"{name}.{kind}": path for kind, path in some.items()}
    for name, drawn in (("verdicts", _verdicts), ("resolution", _resolution)):
        some = {kind: folder / f"{name}.{kind}" for kind in ("svg", "png")}
        style.save(drawn.draw(judged), **some)
        files |= {f"{name}.{kind}": path for kind, path in some.items()}
    comparison = {"study": NASTY, "comparisons": [written(folder / "judged", judged, ("plain", ""))]}
    captions = {path.stem: path.read_text() for path in parameters.CAPTIONS.glob("*.rst")}
    scenario = {"scenario": "plain", "setting": "", "data": {"name": "digits"}, "methods": {"none": {"name": "none"}},
                "attacks": {}, "recipe": {"lr": 0.1, "dp": None}}  # fmt: skip
    scenarios = [scenario, {**scenario, "scenario": NASTY, "recipe": {"lr": 0.2}}]
    order = {"study": NASTY, "verdicts": comparison, "command": "snakemake --cores 1", "seed": 3,
             "bootstrap": 100, "scenarios": scenarios, "cases": cases, "headline": head,
             "tables": [table], "figures": [figure], "captions": captions,
             "edges": [["train", "unlearn"], ["train", "metrics"], ["unlearn", "metrics"]],
             "cost": {"cases": [{**one, "specs": [nodes[1]["spec"]]} for one in cases]}}  # fmt: skip
    counts = {"forgotten": 900, "forgotten_kept": 7, "forgotten_heldout": 0, "heldout": 900, "heldout_trained": 0}
    doubled = {"data": {"duplicates": {"groups": 4, "train_test_pairs": 0}}, "splits": {"copies": counts}}
    for name, spec in doubled.items():
        write_json(folder / f"{name}.json", spec)
    copied = {"data": str(folder / "data.json"), "splits": [str(folder / "splits.json")]}
    order["copies"] = [{"scenario": NASTY, "setting": "", **copied}]
    text = page.render(
        metrics=str(folder / "metrics.csv"), costs=str(folder / "cost.csv"), published="",
        template=str(ROOT / "resources/page/page.html"), stylesheet=str(ROOT / "resources/page/page.css"),
        specs=[node["spec"] for node in nodes], displays=[str(path) for path in files.values()], order=order,
    )  # fmt: skip
    return text, files


def test_the_page_is_whole(rendered):
    parser = Strict()
    parser.feed(rendered[0])
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert {"numbers", "figures", "tables", "controls", "metrics", "cost", "settings", "reproduce"} <= set(parser.ids)
    anchors = [link[1:] for link in parser.links if link.startswith("#") and "-" not in link]
    assert set(anchors) <= set(parser.ids)


def test_the_page_needs_no_network_and_runs_no_script(rendered):
    text, _ = rendered
    parser = Strict()
    parser.feed(text)
    assert {link.split(":")[0].split("#")[0] for link in parser.links} <= {"", "data"}
    assert not parser.tags & {"script", "link", "iframe", "img", "object"}
    css = text[text.index("<style>") : text.index("</style>")]
    assert "@import" not in css
    assert "url(" not in css


def test_nothing_of_a_study_becomes_markup_or_template(rendered):
    text, _ = rendered
    assert "<img" not in text
    assert "{{ 7*7 }}" in text
    seen = Strict()
    seen.feed(text)
    assert NASTY in "".join(seen.text)


def test_failures_and_do_nothing_methods_are_shown_with_their_reason(rendered):
    seen = Strict()
    seen.feed(rendered[0])
    words = " ".join("".join(seen.text).split())
    assert REASON in words
    assert "neggrad failed, so there is no number." in words
    assert "ssd changed nothing, its models are those it was given." in words
    assert "scrub told from retraining: advantage (kde, trained) 0.20 [0.18, 0.22], p < 10⁻⁶" in words


def test_downloads_are_the_files(rendered):
    text, files = rendered
    found = re.findall(r'download="([^"]+)" href="data:[^;]+;base64,([^"]+)"', text)
    assert {name for name, _ in found} == {path.name for path in files.values()}
    for name, content in found:
        path = next(path for path in files.values() if path.name == name)
        assert base64.b64decode(content) == path.read_bytes()


def test_the_page_says_what_differs_and_how_to_compute_one_number_again(rendered):
    seen = Strict()
    seen.feed(rendered[0])
    words = " ".join("".join(seen.text).split())
    assert "<code>recipe.lr</code></th><td>0.1</td><td>0.2</td>" in rendered[0]
    assert "snakemake --cores 1 --force results/metrics/plain/metrics.csv" in words


def test_exact_copies_stand_beside_the_controls(rendered):
    text, _ = rendered
    section = text[text.index('<section id="controls">') : text.index('<section id="cost">')]
    assert "the model goes on knowing what it was asked to forget" in section
    assert '<td class="bad">7 of 900</td>' in section


def test_captions_are_text_but_for_their_emphasis():
    assert page.paragraphs(f"One *word*,\nfolded.\n\n{NASTY}")[0] == "One <em>word</em>, folded."
    assert page.paragraphs(NASTY)[0] == str(escape(NASTY))


def test_the_first_screen_says_what_the_page_tells_and_what_its_signs_mean(rendered):
    shown = Strict()
    shown.feed(rendered[0])
    text = " ".join(" ".join(shown.text).split())
    start = text[: text.index("What the metrics are worth")]
    assert "This page says how well 6 unlearning methods made models forget samples" in start
    assert "says how often it may be wrong" in start
    for sign in ("as retrained, within the margin", "told from retraining, better than none", "over-unlearned"):
        assert sign in start
    order = [rendered[0].index(f'id="{name}"') for name in ("summary", "verdicts", "metrics", "numbers", "cost")]
    assert order == sorted(order)


def test_measures_of_measures_stand_on_the_page_with_their_drawing(rendered):
    text, _ = rendered
    section = text[text.index('<section id="metrics">') : text.index('<section id="numbers">')]
    assert '<figure id="figure-meta">' in section
    assert "Q, extended" in section
    assert 'download="meta.svg"' in section


def test_one_sentence_covers_the_settings_of_an_axis():
    cases = [case("s", name, {"size": size}) for size in ("4", "8", "16") for name in ("none", "x", "retrain")]
    same, other = (
        rows_of("x", "told", 0.4, share=share, against=told) for share, told in ((0.5, "better"), (0, "like"))
    )
    found = Decisions()
    for size, line in (("4", same), ("8", same), ("16", other)):
        one = made(("s", f"size={size}"), *GOOD, line)
        found.verdicts |= one.verdicts
        found.distances |= one.distances
    (one,) = page.summary(Numbers([q(one, 0.9) for one in cases], cases), found)
    (line,) = one["verdicts"]
    by = "told from retraining: advantage (kde, trained) 0.40 [0.38, 0.42], p < 10⁻⁶"
    assert line["text"] == (
        f"at size = 4, 8: {by}; removes 50 % [40, 60] of what doing nothing leaves; "
        f"at size = 16: {by}; not told from doing nothing"
    )


def test_options_of_a_method_differ_only_among_scenarios_that_use_it():
    one = {"scenario": "a", "setting": "", "methods": {"ssd": {"a": 1, "b": 2}}, "attacks": {}, "recipe": {"dp": None}}
    two = {**one, "scenario": "b", "methods": {"none": {}, "ssd": {"a": 1, "b": 3}}, "recipe": {"dp": {"epsilon": 8.0}}}
    three = {**one, "scenario": "c", "methods": {"none": {}}}
    found = page.settings([one, two, three])
    assert ("methods.ssd.a", "1") in found["shared"]
    assert dict(found["differ"]) == {
        "methods": ["ssd", "none, ssd", "none"], "methods.ssd.b": ["2", "3", ""], "recipe.dp.epsilon": ["—", "8.0", "—"]
    }  # fmt: skip


def test_the_drawing_of_the_stages_has_a_box_and_an_arrow_for_each():
    costs = {name: {"jobs": 2, "models": 0, "seconds": 3.0} for name in ("data", "train", "metrics")}
    boxes = dag.stages(costs, 4)
    edges = [["data", "train"], ["train", "metrics"], ["data", "metrics"], ["metrics", "report"]]
    for drawing in (dag.across(boxes, edges), dag.down(boxes, edges)):
        assert drawing.count("<rect") == 4
        assert drawing.count("marker-end") == 4
        assert drawing.count('class="far"') == 1
