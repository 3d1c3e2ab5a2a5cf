"""The pictures of docs/gallery.md and README: pages of the demo in Chromium.

python docs/make_gallery.py CALLS MEETINGS

CALLS and MEETINGS are the folders of `spklink demo` and of `spklink demo --meetings`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
PICTURES = HERE / "gallery"
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
CHROMIUM = "/usr/bin/chromium"


def main(calls: Path, meetings: Path) -> None:
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
            report = calls / "results" / "report.html"
            page.goto(report.resolve().as_uri())
            _keep(page, PICTURES / f"report-{scheme}.png")
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto((meetings / "results" / "report.html").resolve().as_uri())
        _keep(page, PICTURES / "meetings.png")
        _review(browser.new_page(viewport={"width": 1280, "height": 860}), calls / "results")
        browser.close()


def _review(page: Page, results: Path) -> None:
    """The page on which people listen, of a server that ends with this."""
    command = [sys.executable, "-m", "spklink", "review", str(results), "--reviewer", "anna"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = next(word for word in server.stdout.readline().split() if "://" in word)
        page.goto(address)
        page.wait_for_timeout(2000)  # until the sound is drawn
        _keep(page, HERE / "review.png")
        server.terminate()


def _keep(page: Page, path: Path) -> None:
    page.wait_for_timeout(500)
    page.screenshot(path=path)
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
