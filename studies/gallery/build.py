"""Make the reports of docs/gallery anew, and a picture of the first screen of each.

    uv run python studies/gallery/build.py [NAME …]

Run in the repository's root; without a name all six are made. ``tofu`` needs the logs of OpenUnlearning in saves/eval
(studies/field/README.md), ``cifar10`` the data in data/. Chromium takes the pictures.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

NAMES = ("digits", "cifar10", "text", "tofu", "one_run", "leaderboard")
HERE, DOCS = Path("studies/gallery"), Path("docs/gallery")
LOGS = Path("saves/eval")
#: Those of the leaderboard's scenarios that take minutes and no download.
SCENARIOS = ("digits", "table")
SIZE = (1280, 800)
#: Links to files that lie beside a report in its folder of results, which the gallery does not have.
BESIDE = re.compile(r'<a download="[^"]*" href="[^"]*" data-type="[^"]*">(?:svg|png)</a>')


def report(name: str) -> Path:
    """Run one study and return where its report lies."""
    if name == "tofu":
        logs = sorted(map(str, LOGS.glob("tofu_Llama-3*")))
        subprocess.run(["audit", "read", *logs, "--study", "results/gallery_tofu.yaml"], check=True)
    elif name == "leaderboard":
        only = f"only=[{','.join(SCENARIOS)}]"
        study = ["studies/leaderboard.yaml", "--cores", "all", "--config", only]
        subprocess.run(["audit", "run", *study], check=True)
        return Path("results", "-".join(("leaderboard", *SCENARIOS)), "report.html")
    else:
        subprocess.run(["audit", "run", str(HERE / f"{name}.yaml"), "--cores", "all"], check=True)
    return Path(f"results/gallery_{name}/report.html")


def picture(page: Path, target: Path) -> None:
    """The first screen of a page as a PNG of 128 colours."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        screen = chromium.new_page(viewport=dict(zip(("width", "height"), SIZE, strict=True)))
        screen.goto(page.resolve().as_uri())
        screen.wait_for_selector("html[data-ready]")
        screen.screenshot(path=target)
        chromium.close()
    Image.open(target).convert("RGB").quantize(128).save(target, optimize=True)


def main(names: list[str]) -> None:
    """Make the reports ``names``, or all."""
    DOCS.mkdir(exist_ok=True)
    for name in names or NAMES:
        page = DOCS / f"{name}.html"
        page.write_text(BESIDE.sub("", report(name).read_text(encoding="utf-8")), encoding="utf-8")
        picture(page, page.with_suffix(".png"))
        print(f"{page}: {page.stat().st_size / 1e6:.1f} MB, {page.with_suffix('.png').stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
