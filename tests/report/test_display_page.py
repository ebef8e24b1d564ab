"""The page holds everything, needs nothing from elsewhere, and lets no text of a study become markup."""

import base64
import gzip
import json
import math
import re
from html.parser import HTMLParser

import pytest
from markupsafe import escape
from unlearning_audit.report import answer
from unlearning_audit.report.decisions import Decisions
from unlearning_audit.report.lookup import Numbers
from unlearning_audit.report.page import details, embed, page
from unlearning_audit.report.tables import typeset

from decision_cases import GOOD, decisions_on
from decision_cases import rows as rows_of
from display_cases import REASON, case
from page_cases import NASTY, PICTURE, render

VOID = {"meta", "path", "rect", "use", "br", "img", "link", "input", "hr"}


class Strict(HTMLParser):
    """Collects tags, attributes and text, and insists that every tag is closed in turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.text = [], set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href", "action", "data")]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text.append(data)

    def words(self, joint=""):
        return " ".join(joint.join(self.text).split())

    def start(self):
        """The first screen."""
        words = self.words(" ")
        return words[: words.index("Every verdict in words", words.index("No method"))]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """The page of the study made by hand, its files, and its parts."""
    text, files = render(tmp_path_factory.mktemp("page"))
    return text, files, Strict(text)


def test_the_page_is_whole(rendered):
    _, _, parser = rendered
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    anchors = {link[1:] for link in parser.links if link.startswith("#") and "-" not in link}
    sections = {"numbers", "figures", "tables", "controls", "metrics", "cost", "settings", "reproduce"}
    assert sections | anchors <= set(parser.ids)
    order = [rendered[0].index(f'id="{name}"') for name in ("overview", "words", "verdicts", "figures", "cost")]
    assert order == sorted(order)


def test_the_page_needs_no_network(rendered):
    text, files, parser = rendered
    beside = {f"{path.parent.name}/{path.name}" for path in files.values()}
    assert {link for link in parser.links if not link.startswith("#")} == beside | {PICTURE}
    assert not parser.tags & {"link", "iframe", "object"}
    assert ("<script src" in text, "default-src 'none'" in text) == (False, True)
    assert not re.search(r"@import|url\(", text[text.index("<style>") : text.index("</style>")])


def test_nothing_of_a_study_becomes_markup_or_template(rendered):
    text, _, parser = rendered
    assert re.findall(r"<img [^>]*>", text) == [
        f'<img src="{PICTURE}" alt="{words}">'
        for words in ("the record", "forgotten record: sample 0, label 3, score 0, p = 0.001")
    ]
    assert NASTY in "".join(parser.text)
    assert [part for part in ("example.org", "image/svg+xml;base64") if part in text] == []


def test_the_page_says_what_failed_what_is_recognised_and_what_remains(rendered):
    text, _, parser = rendered
    for sentence in (
        REASON,
        "scrub traces remain: advantage (kde, trained) 0.20 [0.18, 0.22], p < 10⁻⁴",
        "5 of 6 forgotten records are still recognised; at most 0.5 of them are expected to be false.",
        "None of 1 forgotten records is still recognised.",
        "forgotten sample 0, label 3, score 0, p = 0.001 1, 2never seen sample 9, label 3, score 0",
    ):
        assert sentence in parser.words()
    assert f"<q>{escape(NASTY)}</q>" in text
    assert '<td class="bad">7 of 900</td><td class="good">0 of 900</td>' in text
    assert '<span class="t3" title="4.25 nats"> 3.5</span>' in text


def unpacked(content):
    return gzip.decompress(base64.b64decode(content))


def test_downloads_are_the_files(rendered):
    text, files, _ = rendered
    downloads = re.findall(r'download="([^"]+)" href="([^"]+)" data-type="[^"]+"(?: data-content="([^"]+)")?', text)
    assert {name: address for name, address, _ in downloads} == {
        name: f"{path.parent.name}/{name}" for name, path in files.items()
    }
    for name, _, content in downloads:
        assert bool(content) == (files[name].suffix in embed.PACKED)
        assert not content or unpacked(content) == files[name].read_bytes()


def test_what_lies_behind_a_square_is_in_the_page(rendered):
    content = json.loads(unpacked(re.search(r'id="details">([^<]+)<', rendered[0])[1]))
    square = content["squares"]["scrub|plain|"]
    assert (square["word"], content["columns"]["plain|"]["state"]) == ("traces remain", "✓ passed")
    assert square["distances"] == [
        {"label": "advantage (kde, trained)", "closed": "50 % [40, 60]", "text": "0.20 [0.18, 0.22]", "margin": "0.05",
         "p": "p < 10⁻⁴"}
    ]  # fmt: skip
    assert rendered[0].count(f'id="records-{square["number"]}"') == 1


def test_the_first_screen_is_the_answer_above_the_matrix(rendered):
    start = rendered[2].start()
    for sign in (
        "Not to be concluded: that methods with the verdict 'cannot tell' forget; anything about other data, models or "
        "attacks.",
        "like retraining", "traces remain", "model damaged", "✓ passed", "What would decide the 1 open",
        "fisher in budget, epsilon = ∞: 4 times as many pairs would decide",
        "plain: extended from 2 and 4 to 8 pairs after its verdicts could be seen, without planned looks, so more than "
        "5 % of its verdicts may be wrong.",
    ):  # fmt: skip
        assert sign in start
    assert start.index("No method is shown to be like retraining.") < start.index("All scenarios")
    assert (start.count("extended from"), Decisions().extensions()) == (1, "")
    methods = re.findall(r'<tr data-method="([^"]+)"', rendered[0])
    assert methods[-3:] == ["none", "retrain", "retrain_control"]


# ---------------------------------------------------------------- the matrix


def board_of(*methods):
    """The answer at one place with these methods beside good references, its verdicts and its cases."""
    lines = {line[0]["method"]: line for line in (*GOOD, *methods)}
    cases = [case("plain", name) | {"metrics": ""} for name in lines]
    judged = decisions_on(("plain", ""), *lines.values()).at(("plain", ""))
    return of_cases(judged, cases), judged, cases


def of_cases(judged, cases):
    """The answer at the only place."""
    return answer.answers(Numbers([], cases), Decisions({judged.place: judged}))[0]


def test_a_square_says_verdict_share_and_lost_use():
    scrub, neggrad = rows_of("scrub", "distinguishable", 0.2, share=0.5), rows_of("neggrad", "broken", 0.0, gap=0.3)
    board, *_ = board_of(scrub, neggrad)
    squares = {name: board.squares[name] for name in ("scrub", "neggrad")}
    assert {name: (s.state.word, s.percent, s.tone, s.lost) for name, s in squares.items()} == {
        "scrub": ("traces remain", "50 %", "traces", ""),
        "neggrad": ("model damaged", "", "damaged", "−30 points of retain accuracy"),
    }
    assert squares["scrub"].on_ruler("share") == 40.0  # of a bar that reaches to 1.25
    assert [line.method for line in board.lines] == ["scrub", "neggrad"]


def test_cells_of_a_column_of_numbers_have_their_order():
    texts = {"< 10⁻⁴": 1e-4, "0.0021": 0.0021, "−0.05 [−0.1, 0]": -0.05, "× 1.13": 1.13, "14 s": 14, "3.5 min": 210,
             "2.1 h": 7560, "1.5 GiB": 1536, "900 MiB": 900, "50 % [40, 60]": 50, "1,234 of 5,000": 1234,
             "1.2e−05": 1.2e-5, "−1.25e+06": -1.25e6, "2–3 of 6": 2, "5.0 ×": 5, "−∞": -math.inf}  # fmt: skip
    assert {text: typeset.leading(text) for text in texts} == pytest.approx(texts)
    assert all(math.isnan(typeset.leading(text)) for text in ("", "—", "kde/trained", "e2"))
    columns = ("0.01", "< 10⁻⁴", "failed", "2"), ("kde", "2", "3", ""), ("", "—", "", "")
    lines = [typeset.Line("", [*map(typeset.Entry, row)]) for row in zip(*columns, strict=True)]
    sheet = typeset.Sheet("t", "t", "", "m", [*map(typeset.Head, "abc")], lines)
    assert page.sort_numbers(sheet) == [{"0.01": 0.01, "< 10⁻⁴": 0.0001, "failed": "", "2": 2.0}, {}, {}]


@pytest.mark.parametrize(
    ("ahead", "stars", "sentence"),
    [
        ((0, 2, 0), ["a", "c"], "a or c may be the nearest of 3 methods to retraining by advantage, at 95 %."),
        ((0, 2, 1), ["a"], "a is the nearest of 3 methods to retraining by advantage, at 95 %."),
        ((0, 0, 0), [],
         "None of 3 methods is proven to be nearer to retraining than another by advantage, at 95 %."),
    ],
)  # fmt: skip
def test_a_star_says_that_no_other_method_is_proven_to_be_nearer(ahead, stars, sentence):
    """``ahead``: how many others are proven to be nearer than a, b and c, of which all leave traces."""
    _, judged, cases = board_of(*(rows_of(name, "distinguishable", 0.2, share=0.5) for name in "abc"))
    judged.ranks = [
        {"metric": metric, "method": name, "ahead": count, "distance": 0.2, "best": 1, "worst": 9, "methods": 9}
        for metric, counts in (("advantage", (0, *ahead)), ("tail_advantage", (0, 0, 0, 0)))
        for name, count in zip(("retrain", *"abc"), counts, strict=True)
    ]
    board = of_cases(judged, cases)
    assert [name for name in "abc" if board.squares[name].nearest] == stars
    assert details.build([board], cases, "")["columns"]["plain|"]["nearest"] == sentence
    if not stars:  # one whose models are damaged leads nobody
        judged.ranks[2]["ahead"] = 1
        judged.verdicts["a"]["verdict"] = "broken"
        board = of_cases(judged, cases)
        assert [name for name in "abc" if board.squares[name].nearest] == ["c"]


@pytest.mark.parametrize(
    ("lines", "words", "sentence"),  # a name among the lines: a reference without a verdict
    [
        ((), "passed", "none: advantage"),
        (("retrain", "retrain_control"), "not checked", "(retrain_control)"),
        (("none",), "not checked", "there is no verdict on none"),
        ((rows_of("none", "inconclusive", 0.01, p=0.5),), "doing nothing leaves no trace here", "too little to find"),
        ((rows_of("retrain", "distinguishable", 0.3),), "two retrainings differ", "retrain: advantage"),
        ((rows_of("retrain_control", "distinguishable", 0.2),), "two retrainings differ", "although it is retraining"),
        ((rows_of("retrain", "inconclusive", 0.01, half=0.1, p=1.0),), "too few models to confirm", "the margin"),
        ((rows_of("scrub", "no_yardstick", 0.1, note="nothing was retrained"),),
         "too few retrained models to compare with", "nothing was retrained"),
    ],
)  # fmt: skip
def test_heads_say_whether_controls_hold(lines, words, sentence):
    lacking = [line for line in lines if isinstance(line, str)]
    _, judged, cases = board_of(rows_of("scrub", "distinguishable", 0.2), *lines[len(lacking) :])
    for name in lacking:
        del judged.verdicts[name]
    state = of_cases(judged, cases).state
    assert (state.sign, state.words, sentence in state.sentence) == ("✓" if words == "passed" else "–", words, True)
