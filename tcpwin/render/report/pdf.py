"""A report as PDF: its page, printed by the system's browser.

In: HTML. Out: PDF. The browser runs without a window, with a profile of its own that is removed, and without network.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from tcpwin.errors import OutputError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
VARIABLE = "BROWSER_PATH"
"""A browser of the Chromium family that is to be used instead of those on the path."""
WINDOW = "748,1000"
"""In which a figure is as wide as on paper."""
MOST_BYTES = 5_000_000
"""Of a file with tags, one for each cell of a table and each line of a figure: half of it with many connections."""
MOST_SECONDS = 300.0
"""For a page, which is drawn in a few: a browser that hangs is ended."""
LOOK_SECONDS = 0.1
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


def print_page(html: str, seconds: float = MOST_SECONDS, unwanted: Event | None = None, *, niceness: int = 0) -> bytes:
    """Print a page, with the tags by which screen readers find their way where these leave the file small enough.

    Args:
        seconds: most that it may take.
        unwanted: to be set, from another thread, where nobody waits for it any more.
        niceness: how far the browser stands back where others want the processors (nice(2)).

    Raises:
        OutputError: there is no browser, it failed, it took too long, or it is unwanted.
    """
    limits = _Limits(time.monotonic() + seconds, unwanted, niceness)
    printed = _print(html, limits)
    return printed if len(printed) <= MOST_BYTES else _print(html, limits, "--disable-pdf-tagging")


@dataclass(frozen=True)
class _Limits:
    end: float
    unwanted: Event | None
    niceness: int


def _print(html: str, limits: _Limits, *switches: str) -> bytes:
    browser = find_browser()
    with TemporaryDirectory(prefix="tcpwin-report-") as folder:
        page, out = Path(folder, "report.html"), Path(folder, "report.pdf")
        page.write_text(html, encoding="utf-8")
        command = [
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
        ]
        status, said = _run(command, limits)
        if status or not out.exists():
            lines = said.decode("utf-8", "replace").strip().splitlines()
            raise OutputError(f"{browser} did not print the report: {lines[-1] if lines else f'status {status}'}")
        return out.read_bytes()


def _run(command: list[str], limits: _Limits) -> tuple[int, bytes]:
    """Run a browser; it and all that it started are gone afterwards."""
    # A session of its own has a group of its own, in which its helpers are.
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as browser:
        try:
            if limits.niceness:
                # Its helpers, which it starts later, are given the same. It has ours now, which only root could raise.
                with contextlib.suppress(ProcessLookupError):
                    ours = os.getpriority(os.PRIO_PROCESS, browser.pid)
                    os.setpriority(os.PRIO_PROCESS, browser.pid, ours + limits.niceness)
            while True:
                try:
                    _, said = browser.communicate(timeout=LOOK_SECONDS)
                except subprocess.TimeoutExpired:
                    if limits.unwanted is not None and limits.unwanted.is_set():
                        raise OutputError("the report is not wanted any more") from None
                    if time.monotonic() > limits.end:
                        raise OutputError("printing the report took longer than it may") from None
                else:
                    return browser.returncode, said
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(browser.pid, signal.SIGKILL)
