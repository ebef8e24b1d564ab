"""How long the page of a study of 60 methods in 40 scenarios takes to open, in Chromium: median of five, in seconds.

uv run python tests/benchmarks/page.py
"""

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from page_cases import render

METHODS, SCENARIOS, TIMES = 60, 40, 5


def main() -> None:
    """Print the size of the page, and seconds until its matrix can be sorted and its details have opened."""
    folder = Path(tempfile.mkdtemp())
    path = folder / "report.html"
    path.write_text(render(folder, METHODS, SCENARIOS)[0], encoding="utf-8")
    ready, opened = [], []
    with sync_playwright() as driver:
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for _ in range(TIMES):
            page = chromium.new_page(viewport={"width": 1280, "height": 800})
            page.set_default_timeout(120_000)
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready]")
            ready.append(page.evaluate("performance.now()") / 1000)
            page.evaluate("window.clicked = performance.now()")
            page.locator("#squares tbody a").first.click()
            page.wait_for_selector("#behind section")
            opened.append(page.evaluate("performance.now() - window.clicked") / 1000)
            page.close()
        chromium.close()
    print(f"{path.stat().st_size / 1e6:.2f} MB, ready after {statistics.median(ready):.2f} s", end=", ")
    print(f"a square opens in {statistics.median(opened):.2f} s")


if __name__ == "__main__":
    main()
