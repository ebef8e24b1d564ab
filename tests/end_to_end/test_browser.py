"""The page in a real browser: it sorts, filters, opens, keeps its state in the address, and needs nothing else."""

import csv
import shutil
from pathlib import Path

import pytest

from page_cases import render
from slow_cases import slow

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium here; on Debian: apt-get install chromium")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where the page made by hand lies, among the files it names."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(path.parent)[0], encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, address):
    """Opens the page at a fragment; afterwards nothing may have been said on the console or asked of a network."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.set_default_timeout(60_000)
    messages, requests = [], []

    def opened(fragment=""):
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address + fragment)
        page.wait_for_selector("html[data-ready]")
        return page

    yield opened
    context.close()
    # The browser says so when a test reads what is not on the screen.
    assert [text for text in messages if "hidden by content-visibility" not in text] == []
    assert [
        url for url in requests if url.partition("#")[0] != address and not url.startswith(("blob:", "data:"))
    ] == []


def methods(page):
    """The names of the rows from the top."""
    return page.locator("#squares tbody th").all_inner_texts()


def columns(page):
    """The scenarios of the columns from the left."""
    return page.locator("#squares thead tr:first-child .name").all_inner_texts()


def download(page, button, path):
    """Keep what a button of the page downloads."""
    with page.expect_download() as waiting:
        button.click()
    waiting.value.save_as(path)
    return path


def test_a_click_on_a_head_sorts_best_first_and_stands_in_the_address(visit):
    from playwright.sync_api import expect

    page = visit()
    before = methods(page)
    head = page.locator("#squares thead th", has_text="plain")
    head.click()
    expect(head).to_have_attribute("aria-sort", "ascending", timeout=30_000)
    expect(page.locator("#squares tbody th").first).to_have_text("scrub")  # the library sorts when it has time
    # Three methods without a distance follow in any order; references, then what is not there, come last.
    assert sorted(methods(page)) == sorted(before)
    assert methods(page)[-4:] == ["retrain", "retrain (control)", "none", "fisher"]
    page.wait_for_url(lambda url: "sort=plain" in url)
    again = visit("#" + page.url.split("#")[1])
    expect(again.locator("#squares tbody th")).to_have_text(methods(page), timeout=30_000)
    assert methods(page) != before


def test_the_first_screen_answers(visit):
    """At 1280 × 800, without scrolling: which method is best, did it forget, how sure is that, at which cost, do the
    systems agree, and can it be trusted?"""
    page = visit()
    parts = [page.locator(name).first for name in (".answer .best", ".ruler tbody tr:first-child", ".answer .checked")]
    best, first, checked = (part.inner_text() for part in parts)
    assert all(word in best for word in ("No method is shown to be like retraining.", "2 systems disagree on scrub"))
    assert all(word in first for word in ("traces remain", "50 % [40, 60]"))
    boxes = [part.bounding_box() for part in parts]
    assert ("Checks passed" in checked, max(box["y"] + box["height"] for box in boxes) <= 800) == (True, True)


def test_filters_leave_what_was_asked_for(visit):
    page = visit()
    assert "fisher" in methods(page)
    page.locator("[name=verdict]").select_option("model damaged")
    assert (methods(page), columns(page)) == (["fisher"], ["budget"])
    page.get_by_role("button", name="reset").click()
    page.locator("[name=method]").fill("scr")
    assert methods(page) == ["scrub"]
    page.get_by_role("button", name="reset").click()
    page.locator("summary", has_text="Columns").click()
    page.locator("[name=scenario][value=plain]").uncheck()
    assert columns(page) == ["budget"]
    page.wait_for_url(lambda url: "hide=plain" in url)


def test_an_address_restores_the_whole_view(visit):
    page = visit("#verdict=model%20damaged&steps=1&transpose=1")
    assert page.locator("#squares tbody .step").all_inner_texts() == ["epsilon = 8"]
    assert page.locator("#squares thead th").all_inner_texts()[2:] == ["fisher"]
    assert page.locator("[name=verdict]").input_value() == "model damaged"
    assert page.locator("[name=steps]").is_checked()


def test_steps_that_are_gathered_say_the_worst_and_how_often(visit):
    page = visit()
    cell = page.locator("#squares tbody tr", has_text="fisher").locator("td").nth(1)
    assert cell.locator(".word").inner_text() == "model damaged 1/2"
    labels = cell.locator(".marks a").evaluate_all("links => links.map((link) => link.ariaLabel)")
    assert labels == ["epsilon = 8: model damaged", "epsilon = ∞: cannot tell"]
    page.locator("[name=steps]").check()
    assert page.locator("#squares thead .step").all_inner_texts() == ["epsilon = 8", "epsilon = ∞"]


def test_a_square_opens_with_its_sentence_and_files(visit, tmp_path):
    page = visit()
    page.locator("#squares tbody tr", has_text="scrub").locator("a").first.click()
    page.wait_for_selector("#behind section")
    text = page.locator("#behind").inner_text()
    assert "traces remain: advantage (kde, trained) 0.20 [0.18, 0.22]" in text
    assert "snakemake --cores 1 --force results/metrics/plain/metrics.csv" in text
    page.wait_for_url(lambda url: "open=scrub" in url)
    file = download(page, page.get_by_role("button", name="csv of these distances"), tmp_path / "rows.csv")
    assert [row["metric"] for row in csv.DictReader(file.open())] == ["advantage", "accuracy_retain", "accuracy_test"]
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "open=" not in url)


def test_files_come_out_of_the_page_as_they_went_in(visit, address, tmp_path):
    page = visit()
    page.locator("#table-verdicts summary").click()
    file = download(page, page.locator('a[download="verdicts.csv"]'), tmp_path / "verdicts.csv")
    assert file.read_bytes() == Path(address.removeprefix("file://")).with_name("verdicts.csv").read_bytes()


@pytest.mark.parametrize("fragment", ["", "#steps=1", "#transpose=1", "#open=scrub%7Cplain%7C"])
def test_nothing_overflows_at_any_width(visit, fragment):
    page = visit(fragment)
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    beyond = """(width) => [...document.querySelectorAll("main *, dialog[open] *")].filter((one) =>
        !one.closest(".scroll, pre code, svg, .hidden, .menu") && one.getBoundingClientRect().right > width + 1)
        .map((one) => one.outerHTML.slice(0, 200))"""
    for width in (1920, 1280, 800, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(beyond, width) == [], width


@pytest.mark.parametrize(
    "fragment", ["", "#open=scrub%7Cplain%7C", *slow("#transpose=1&verdict=model%20damaged", "#steps=1&hide=plain")]
)
def test_accessibility_rules_hold(visit, fragment):
    from axe_playwright_python.sync_playwright import Axe

    page = visit(fragment)
    if "open" in fragment:
        page.wait_for_selector("#behind section")
    else:
        page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        page.wait_for_selector("details.table table.dataTable")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        violations = Axe().run(page).response["violations"]
        assert [(violation["id"], violation["nodes"][0]["html"][:200]) for violation in violations] == [], scheme


def test_arrow_keys_go_from_square_to_square(visit):
    page = visit()
    page.locator("#squares tbody a[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('tr').rowIndex") == 3
    page.keyboard.press("Enter")
    page.wait_for_selector("#behind[open]")


def test_without_scripts_the_matrix_and_all_tables_are_there(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert "model damaged" in page.locator("#squares").inner_text()
    assert not page.locator("#tools").is_visible()
    page.locator("#table-verdicts summary").click()
    assert "scrub" in page.locator("#table-verdicts table").inner_text()
    page.locator("#squares tbody tr", has_text="scrub").locator("a").first.click()
    assert page.locator("#words li", has_text="scrub").is_visible()  # the browser opens what an address names
    context.close()
