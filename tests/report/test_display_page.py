"""The page holds everything, needs nothing from elsewhere, and lets no text of a study become markup."""

import base64
import gzip
import hashlib
import json
import math
import re
from html.parser import HTMLParser

import pytest
from markupsafe import escape
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import details, embed, matrix, page
from unlearning_audit.report.tables import typeset

from decision_cases import GOOD, decisions_on
from decision_cases import rows as rows_of
from display_cases import REASON, case
from page_cases import NASTY, PICTURE, ROOT, render

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
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
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
    """The page of the study made by hand."""
    return render(tmp_path_factory.mktemp("page"))


def test_the_page_is_whole(rendered):
    parser = Strict()
    parser.feed(rendered[0])
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert {"numbers", "figures", "tables", "controls", "metrics", "cost", "settings", "reproduce"} <= set(parser.ids)
    anchors = [link[1:] for link in parser.links if link.startswith("#") and "-" not in link]
    assert set(anchors) <= set(parser.ids)


def test_the_page_needs_no_network(rendered):
    text, files = rendered
    parser = Strict()
    parser.feed(text)
    beside = {f"{path.parent.name}/{path.name}" for path in files.values()}
    assert {link for link in parser.links if not link.startswith("#")} == beside | {PICTURE}
    assert not parser.tags & {"link", "iframe", "object"}
    assert "<script src" not in text
    assert "default-src 'none'" in text
    css = text[text.index("<style>") : text.index("</style>")]
    assert "@import" not in css
    assert "url(" not in css


def test_nothing_of_a_study_becomes_markup_or_template(rendered):
    text, _ = rendered
    assert re.findall(r"<img [^>]*>", text) == [
        f'<img src="{PICTURE}" alt="{words}">'
        for words in ("the record", "forgotten record: sample 0, label 3, score 0, p = 0.001")
    ]
    assert "{{ 7*7 }}" in text
    parser = Strict()
    parser.feed(text)
    assert NASTY in "".join(parser.text)


def test_failures_and_do_nothing_methods_are_shown_with_their_reason(rendered):
    parser = Strict()
    parser.feed(rendered[0])
    words = " ".join("".join(parser.text).split())
    assert REASON in words
    assert "neggrad failed, so there is no number." in words
    assert "ssd changed nothing: its models are those it was given." in words
    assert "scrub traces remain: advantage (kde, trained) 0.20 [0.18, 0.22], p < 10⁻⁴" in words


def test_records_that_are_still_recognised_are_shown(rendered):
    parser = Strict()
    parser.feed(rendered[0])
    words = " ".join("".join(parser.text).split())
    assert "5 of 6 forgotten records are still recognised" in words
    assert "at most 0.5 of them are expected to be false." in words
    assert f"<q>{escape(NASTY)}</q>" in rendered[0]
    assert "None of 1 forgotten records is still recognised." in words
    assert '<span class="t3" title="4.25 nats"> 3.5</span>' in rendered[0]
    assert "forgotten sample 0, label 3, score 0, p = 0.001 1, 2never seen sample 9, label 3, score 0" in words
    assert "example.org" not in rendered[0]
    assert "image/svg+xml;base64" not in rendered[0]
    number = behind(rendered[0])["squares"]["scrub|plain|"]["number"]
    assert rendered[0].count(f'id="records-{number}"') == 1


def test_downloads_are_the_files(rendered):
    text, files = rendered
    downloads = re.findall(r'download="([^"]+)" href="([^"]+)" data-type="[^"]+"(?: data-content="([^"]+)")?', text)
    assert {name for name, _, _ in downloads} == {path.name for path in files.values()}
    for name, address, content in downloads:
        path = next(path for path in files.values() if path.name == name)
        assert address == f"{path.parent.name}/{name}"
        assert bool(content) == (path.suffix in embed.PACKED)
        assert not content or unpacked(content) == path.read_bytes()


def unpacked(content):
    return gzip.decompress(base64.b64decode(content))


def behind(text):
    """What opens behind the squares."""
    return json.loads(unpacked(re.search(r'id="details">([^<]+)<', text)[1]))


def test_what_lies_behind_a_square_is_in_the_page(rendered):
    content = behind(rendered[0])
    square = content["squares"]["scrub|plain|"]
    assert square["word"] == "traces remain"
    assert square["command"] == "snakemake --cores 1 --force results/metrics/plain/metrics.csv"
    assert square["distances"] == [
        {"label": "advantage (kde, trained)", "closed": "50 % [40, 60]", "text": "0.20 [0.18, 0.22]", "margin": "0.05",
         "p": "p < 10⁻⁴", "undefined": False}
    ]  # fmt: skip
    assert [row["metric"] for row in square["rows"]] == ["advantage", "accuracy_retain", "accuracy_test"]
    assert content["columns"]["plain|"]["state"] == "✓ passed"


def test_vendored_libraries_are_the_published_files():
    text = (ROOT / "resources/page/vendor/README.md").read_text()
    listed = re.findall(r"`(\S+\.min\.js)` \|.*`([0-9a-f]{64})`", text)
    assert {name for name, _ in listed} == {f"{name}.min.js" for name in page.LIBRARIES}
    for name, digest in listed:
        assert hashlib.sha256((ROOT / "resources/page/vendor" / name).read_bytes()).hexdigest() == digest


def test_the_first_screen_is_the_answer_above_the_matrix(rendered):
    parser = Strict()
    parser.feed(rendered[0])
    text = " ".join(" ".join(parser.text).split())
    start = text[: text.index("Every verdict in words", text.index("No method"))]
    assert "No method is shown to be like retraining." in start
    concluded = "that methods with the verdict 'cannot tell' forget; anything about other data, models or attacks."
    assert f"Not to be concluded: {concluded}" in start
    assert start.index("No method is shown to be like retraining.") < start.index("All scenarios")
    for sign in (
        "like retraining",
        "traces remain",
        "model damaged",
        "✓ passed",
        "What would decide the 1 open",
    ):
        assert sign in start
    assert "fisher in budget, epsilon = ∞: 4 times as many pairs would decide" in start
    order = [rendered[0].index(f'id="{name}"') for name in ("overview", "words", "verdicts", "figures", "cost")]
    assert order == sorted(order)


def test_an_extension_without_a_plan_is_a_line_of_the_first_screen(tmp_path):
    """Among the sentences that open the page, with the sizes; of a study that did not grow nothing is said."""
    clause = "extended from 2 and 4 to 8 pairs after its verdicts could be seen, without planned looks"
    for name, extended, count in (("planned", {}, 0), ("grown", {"unit": "pairs", "from": [2, 4], "to": 8}, 1)):
        (tmp_path / name).mkdir()
        parser = Strict()
        parser.feed(render(tmp_path / name, extended=extended)[0])
        text = " ".join(" ".join(parser.text).split())
        start = text[: text.index("Every verdict in words", text.index("No method"))]
        assert start.count(clause) == count
        assert start.count("plain: extended from") == count
        assert start.count("so more than 5 % of its verdicts may be wrong.") == count


def squares(*methods):
    """The matrix of one place, with references as they must be."""
    names = ("none", "retrain", "retrain_control", *(line["method"] for line, _ in methods))
    cases = [case("plain", name) for name in names]
    return matrix.build(Numbers([], cases), decisions_on(("plain", ""), *GOOD, *methods))


def test_a_square_says_verdict_share_and_lost_use():
    board = squares(rows_of("scrub", "distinguishable", 0.2, share=0.5), rows_of("neggrad", "broken", 0.0, gap=0.3))
    (_, scrub), (_, neggrad) = board.row("scrub")[0], board.row("neggrad")[0]
    assert (scrub.state.word, scrub.percent, scrub.tone, scrub.lost) == ("traces remain", "50 %", "traces", "")
    assert scrub.at("share") == pytest.approx(40.0)  # of a bar that reaches to 1.25
    assert (neggrad.state.word, neggrad.percent, neggrad.tone) == ("model damaged", "", "damaged")
    assert neggrad.lost == "−30 points of retain accuracy"
    assert board.methods == ("scrub", "neggrad", "none", "retrain", "retrain_control")


def test_cells_of_a_column_of_numbers_have_their_order():
    texts = {"< 10⁻⁴": 1e-4, "0.0021": 0.0021, "−0.05 [−0.1, 0]": -0.05, "× 1.13": 1.13, "14 s": 14, "3.5 min": 210,
             "2.1 h": 7560, "1.5 GiB": 1536, "900 MiB": 900, "50 % [40, 60]": 50, "1,234 of 5,000": 1234,
             "1.2e−05": 1.2e-5, "−1.25e+06": -1.25e6, "2–3 of 6": 2, "5.0 ×": 5, "−∞": -math.inf}  # fmt: skip
    for text, value in texts.items():
        assert typeset.leading(text) == pytest.approx(value)
    assert all(math.isnan(typeset.leading(text)) for text in ("", "—", "kde/trained", "e2", "1st"[1:]))
    columns = ("0.01", "< 10⁻⁴", "failed", "2"), ("kde", "2", "3", ""), ("", "—", "", "")
    lines = tuple(
        typeset.Line(str(i), tuple(map(typeset.Entry, row))) for i, row in enumerate(zip(*columns, strict=True))
    )
    sheet = typeset.Sheet("t", "t", "", "m", tuple(map(typeset.Head, "abc")), lines)
    first, *others = page.orders(sheet)
    assert first == {"0.01": 0.01, "< 10⁻⁴": 0.0001, "failed": "", "2": 2.0}
    assert others == [{}, {}]


def ranked(*ahead):
    """`squares` of methods a, b, …, all distinguishable, of which so many others are proven to be nearer."""
    names = "abcdefg"[: len(ahead)]
    judged = decisions_on(("plain", ""), *GOOD, *(rows_of(name, "distinguishable", 0.2, share=0.5) for name in names))
    common = {"distance": 0.2, "best": 1, "worst": 9, "methods": 9}
    judged.ranks["plain", ""] = [
        {"metric": metric, "method": name, "ahead": count, **common}
        for metric, counts in (("advantage", (0, *ahead)), ("tail_advantage", (0,) * (len(ahead) + 1)))
        for name, count in zip(("retrain", *names), counts, strict=True)
    ]
    cases = [case("plain", name) | {"metrics": ""} for name in ("none", "retrain", "retrain_control", *names)]
    return matrix.build(Numbers([], cases), judged), judged, cases


def test_a_star_says_that_no_other_method_is_proven_to_be_nearer():
    board, judged, cases = ranked(0, 2, 0)
    assert [name for name in "abc" if board.squares[name, "plain|"].nearest] == ["a", "c"]
    sentence = details.build(board, judged, cases, "")["columns"]["plain|"]["nearest"]
    assert sentence == "a or c may be the nearest of 3 methods to retraining by advantage, at 95 %."
    board, judged, cases = ranked(0, 2, 1)
    sentence = details.build(board, judged, cases, "")["columns"]["plain|"]["nearest"]
    assert sentence == "a is the nearest of 3 methods to retraining by advantage, at 95 %."


def test_there_is_no_star_where_no_method_is_told_from_another():
    board, judged, cases = ranked(0, 0, 0)
    assert not any(square.nearest for square in board.squares.values())
    sentence = details.build(board, judged, cases, "")["columns"]["plain|"]["nearest"]
    assert sentence == "None of 3 methods is proven to be nearer to retraining than another by advantage, at 95 %."
    judged.ranks["plain", ""][2]["ahead"] = 1
    judged.verdicts["plain", ""]["a"]["verdict"] = "broken"
    board = matrix.build(Numbers([], cases), judged)
    assert [name for name in "abc" if board.squares[name, "plain|"].nearest] == ["c"]


def test_heads_say_whether_controls_hold():
    cases = [case("plain", name) for name in ("none", "retrain", "retrain_control", "scrub")]
    scrub = rows_of("scrub", "distinguishable", 0.2)
    states = {}
    for name, none, retrain in (
        ("fine", rows_of("none", "distinguishable", 0.4), GOOD[1]),
        ("empty", rows_of("none", "inconclusive", 0.01, p=0.5), GOOD[1]),
        ("off", rows_of("none", "distinguishable", 0.4), rows_of("retrain", "distinguishable", 0.3)),
        ("wide", rows_of("none", "distinguishable", 0.4), rows_of("retrain", "inconclusive", 0.01, half=0.1, p=1.0)),
    ):
        judged = decisions_on(("plain", ""), none, retrain, GOOD[2], scrub)
        states[name] = matrix.build(Numbers([], cases), judged).columns[0].state.words
    blind = rows_of("scrub", "no_yardstick", 0.1, note="nothing was retrained")
    judged = decisions_on(("plain", ""), *GOOD, blind)
    state = matrix.build(Numbers([], cases), judged).columns[0].state
    assert (state.words, state.sentence) == ("too few retrained models to compare with", "nothing was retrained")
    assert states == {
        "fine": "passed",
        "empty": "doing nothing leaves no trace here",
        "off": "two retrainings differ",
        "wide": "too few models to confirm",
    }
    alone = decisions_on(("plain", ""), rows_of("none", "distinguishable", 0.4), scrub)
    state = matrix.build(Numbers([], cases), alone).columns[0].state
    assert (state.sign, state.words) == ("–", "not checked")
    assert "retrain_control" in state.sentence
