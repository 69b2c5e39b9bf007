"""A report as PDF: its page, printed by the system's browser.

In: HTML. Out: PDF. The browser runs headless and offline, with a temporary profile.
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
from tcpwin.render.report.digest import digest_in, seal

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
VARIABLE = "BROWSER_PATH"
"""Environment variable that names a Chromium browser to use instead of those on the PATH."""
WINDOW = "748,1000"
"""Window size at which a figure is as wide as on paper."""
MOST_BYTES = 5_000_000
"""Size limit of a tagged PDF: with many connections, the tags of table cells and figure lines are half of the file."""
MOST_SECONDS = 300.0
"""Time limit of printing, which takes a few seconds: a browser that hangs is stopped."""
LOOK_SECONDS = 0.1
DRAWING_MS = 60_000
"""Time for drawing on the page's virtual clock, which does not advance while the page is busy."""


def find_browser() -> str:
    """Find the browser that prints.

    Raises:
        OutputError: no browser was found.
    """
    named = os.environ.get(VARIABLE)
    found = [shutil.which(name) for name in ([named] if named else BROWSERS)]
    path = next((each for each in found if each), None)
    if path is None:
        where = f"{VARIABLE} names {named}, which is not a program" if named else "neither is on the PATH"
        raise OutputError(
            f"printing a PDF needs Chromium or Chrome, but {where}: install one, or write HTML and print it"
        )
    return path


def print_page(html: str, seconds: float = MOST_SECONDS, unwanted: Event | None = None, *, niceness: int = 0) -> bytes:
    """Print a page, with accessibility tags if the file stays small enough.

    Args:
        seconds: time limit.
        unwanted: set by another thread when the result is no longer needed.
        niceness: niceness of the browser's processes (nice(2)).

    Raises:
        OutputError: no browser was found, it failed, it took too long, or the result is unwanted.
    """
    limits = _Limits(time.monotonic() + seconds, unwanted, niceness)
    printed = _print(html, limits)
    if len(printed) > MOST_BYTES:
        printed = _print(html, limits, "--disable-pdf-tagging")
    # A comment after the end (ISO 32000-1, 7.2.4): the text of the pages is compressed.
    digest = digest_in(html)
    return printed if digest is None else seal(printed + f"\n% {digest}\n% ".encode(), ".")


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
            # Chromium cannot sandbox itself as root, which is common in containers. The page is our own.
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            f"--user-data-dir={folder}/profile",
            f"--virtual-time-budget={DRAWING_MS}",
            "--no-pdf-header-footer",
            *switches,
            f"--print-to-pdf={out}",
            page.as_uri(),
        ]
        status, output = _run(command, limits)
        if status or not out.exists():
            lines = output.decode("utf-8", "replace").strip().splitlines()
            raise OutputError(f"{browser} did not print the report: {lines[-1] if lines else f'status {status}'}")
        return out.read_bytes()


def _run(command: list[str], limits: _Limits) -> tuple[int, bytes]:
    """Run a browser, and kill it with all of its child processes afterwards."""
    # A new session gives the browser and its helpers their own process group.
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as browser:
        try:
            if limits.niceness:
                # Helpers started later inherit the niceness. Only root could lower it again.
                with contextlib.suppress(ProcessLookupError):
                    ours = os.getpriority(os.PRIO_PROCESS, browser.pid)
                    os.setpriority(os.PRIO_PROCESS, browser.pid, ours + limits.niceness)
            while True:
                try:
                    _, output = browser.communicate(timeout=LOOK_SECONDS)
                except subprocess.TimeoutExpired:
                    if limits.unwanted is not None and limits.unwanted.is_set():
                        raise OutputError("the report is no longer wanted") from None
                    if time.monotonic() > limits.end:
                        raise OutputError("printing the report exceeded its time limit") from None
                else:
                    return browser.returncode, output
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(browser.pid, signal.SIGKILL)
