"""A report as PDF: its page, printed by the system's browser.

In: HTML. Out: PDF. The browser runs without a window, with a profile of its own that is removed, and without network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from tcpwin.errors import OutputError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
VARIABLE = "BROWSER_PATH"
"""A browser of the Chromium family that is to be used instead of those on the path."""
WINDOW = "748,1000"
"""In which a figure is as wide as on paper."""
MOST_BYTES = 5_000_000
"""Of a file with tags, one for each cell of a table and each line of a figure: half of it with many connections."""
DRAWING_MS = 60_000
"""Of the page's own clock, which does not tick while it works."""


def find_browser() -> str:
    """The browser that prints.

    Raises:
        OutputError: there is none.
    """
    asked = os.environ.get(VARIABLE)
    found = [shutil.which(name) for name in ([asked] if asked else BROWSERS)]
    path = next((each for each in found if each), None)
    if path is None:
        where = f"{VARIABLE} names {asked}, which is no program" if asked else "none is on the path"
        raise OutputError(
            f"a report as PDF is printed by Chromium or Chrome, and {where}: install one, or write HTML and print it"
        )
    return path


def print_page(html: str) -> bytes:
    """Print a page, with the tags by which screen readers find their way where these leave the file small enough.

    Raises:
        OutputError: there is no browser, or it failed.
    """
    printed = _print(html)
    return printed if len(printed) <= MOST_BYTES else _print(html, "--disable-pdf-tagging")


def _print(html: str, *switches: str) -> bytes:
    browser = find_browser()
    with TemporaryDirectory(prefix="tcpwin-report-") as folder:
        page, out = Path(folder, "report.html"), Path(folder, "report.pdf")
        page.write_text(html, encoding="utf-8")
        done = subprocess.run(
            [
                browser,
                "--headless",
                "--disable-gpu",
                "--disable-extensions",
                "--no-first-run",
                f"--window-size={WINDOW}",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                # As root Chromium's own sandbox cannot be had, in containers above all. The page is ours.
                *(["--no-sandbox"] if os.geteuid() == 0 else []),
                f"--user-data-dir={folder}/profile",
                f"--virtual-time-budget={DRAWING_MS}",
                "--no-pdf-header-footer",
                *switches,
                f"--print-to-pdf={out}",
                page.as_uri(),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode or not out.exists():
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise OutputError(
                f"{browser} did not print the report: {said[-1] if said else f'status {done.returncode}'}"
            )
        return out.read_bytes()
