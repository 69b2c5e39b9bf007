"""Take the documentation's pictures of figures and reports: `python tests/report/pictures.py [NAME…]`.

Draws bundled captures with Chromium into `tcpwin/docs/images`, and prints the sizes. `tests/web/screenshots.py` takes
those of the dashboard.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import tcpwin
from tcpwin import figures
from tcpwin.figures.drawing.export import write

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "tcpwin" / "docs" / "images"
CAPTURES = ROOT / "captures"
WORLDS = ROOT / "tests" / "worlds" / "captures"
HERE = Path(__file__).parent / "pictures"
"""Lab runs of an oscillating reader over 300 ms and 10 Mbit/s, with a large and a small buffer."""
REPORT_SIZE = {"width": 1180, "height": 860}
SCALE = 1.5
S = 10**9


def oscillating(path: Path) -> None:
    """Draw the window of a reader that pauses."""
    connection = tcpwin.analyze(HERE / "oscillating-reader.zip").connections[0]
    _write(connection.figure("window"), path, width=900, height=455)


def timeline(path: Path) -> None:
    """Draw all figures on the time axis, dark."""
    connection = tcpwin.analyze(HERE / "collapsing-queue.zip").connections[0]
    _write(connection.figure("timeline", theme="dark"), path, width=900, height=1680, scale=1)


def time_sequence(path: Path) -> None:
    """Draw the segments around a loss."""
    connection = tcpwin.analyze(CAPTURES / "lab" / "loss-1-percent.pcap.gz").connections[0]
    first_ns, last_ns = (connection.start_ns + round(each * S) for each in (1.998, 2.062))
    _write(connection.figure("time-sequence", start_ns=first_ns, end_ns=last_ns), path, width=900, height=417)


def overview(path: Path) -> None:
    """Draw all connections of the lab's captures, each captured at one end."""
    captures = sorted((CAPTURES / "lab").glob("*.pcap.gz"))
    analysis = tcpwin.analyze([each for each in captures if "-receiver." not in each.name])
    _write(analysis.figure("overview"), path, width=900, height=417)


def path_and_queue(path: Path) -> None:
    """Draw a full path: a drawn world with a queue that overflows."""
    connection = tcpwin.analyze(WORLDS / "seed-1-003-sender.pcap.gz").connections[0]
    _write(connection.figure("path"), path, width=900, height=640)


def reference_window(path: Path) -> None:
    """Draw a transfer with a small window next to its reference."""
    bundle = CAPTURES / "reference" / "bulk-300ms-4m2-stock.zip"
    connection = tcpwin.analyze(bundle, capture="sender.pcap.gz").connections[0]
    _write(figures.draw("reference-window", connection), path, width=1000, height=398, scale=2)


def report(path: Path) -> None:
    """Show the first screen of a report."""
    analysis = tcpwin.analyze(CAPTURES / "bundles" / "slow-reader.zip")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_path = Path(folder) / "report.html"
        analysis.report(page_path)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=REPORT_SIZE)  # type: ignore[arg-type]
        page.goto(page_path.as_uri())
        page.locator("#table tbody tr").first.wait_for()
        told = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": 80})
        path.write_bytes(base64.b64decode(told["data"]))
        browser.close()


PICTURES = {
    "window": oscillating,
    "timeline": timeline,
    "time-sequence": time_sequence,
    "overview": overview,
    "path": path_and_queue,
    "reference-window": reference_window,
    "report": report,
}


def _write(figure: Any, path: Path, *, width: int, height: int, scale: float = SCALE) -> None:
    write(figure, str(path), title=path.stem, width=width, height=height, scale=scale)


def main(names: list[str]) -> None:
    """Take the pictures of these names, or all."""
    for name in names or PICTURES:
        path = IMAGES / f"{name}.webp"
        PICTURES[name](path)
        print(path.relative_to(ROOT), f"{path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
