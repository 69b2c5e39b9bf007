"""Measure what a person waits for in a browser: opening connections and zooming.

Uses Chromium's clocks: largest contentful paint, long tasks (performance timeline), and for a zoom the time from the
click to the final figure.
"""

import json
import random
import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, Page, sync_playwright

from .loads import SEED, percentile
from .rows import Row
from .served import Served, ServiceError

SIZE = {"width": 1440, "height": 900}
ZOOMS = 3
SETTLING_MS = 600
"""Time after which nothing of a page or a zoom is still pending."""
OBSERVED = """window.paints = []; window.tasks = [];
const note = (list, value) => (seen) => { for (const each of seen.getEntries()) list.push(value(each)); };
new PerformanceObserver(note(paints, (each) => each.startTime))
  .observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver(note(tasks, (each) => each.duration)).observe({ type: "longtask", buffered: true });"""
ZOOM = """async () => {
  const place = document.getElementById("figure"), before = String(place.layout.xaxis.range);
  const begun = performance.now();
  document.querySelector('[data-move="in"]').click();
  while (String(place.layout.xaxis.range) === before || place.hasAttribute("aria-busy")) {
    if (performance.now() - begun > 60_000) throw new Error("a zoom that does not end");
    await new Promise(requestAnimationFrame);
  }
  return performance.now() - begun;
}"""


def connections(served: Served, capture: Path, count: int) -> list[Row]:
    """Open pages of new connections one after another in one browser, and zoom into each.

    The first page has a separate row, because the service then starts its workers and the browser loads all scripts.

    Raises:
        ServiceError: no browser is installed, or it could not show a page.
    """
    id = served.upload(capture)
    document = json.loads(served.ask("GET", f"/api/v1/captures/{id}/analysis"))
    unprepared = sorted(set(range(document["connections"])) - set(document["worst"]))
    chosen = random.Random(SEED).sample(unprepared, min(count + 1, len(unprepared)))
    chromium = shutil.which("chromium")
    if chromium is None:
        raise ServiceError("chromium is not installed: nothing is measured in a browser")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport=SIZE)
            page.add_init_script(OBSERVED)
            address = f"http://{served.host}:{served.port}/captures/{id}/connections"
            first, *rest = [_measure(page, f"{address}/{number}") for number in chosen]
            browser.close()
    except Error as error:
        raise ServiceError(f"the browser: {error.message.splitlines()[0]}") from None

    def p95(name: str, values: list[float], must: float) -> Row:
        return Row(f"{name}, p95 of {len(values):,}", "ms", (percentile(values, 0.95),), must, None)

    return [
        p95("in a browser: a connection that nobody opened, largest paint", [each[0] for each in rest], 1000),
        p95("its longest task", [each[1] for each in rest], 200),
        p95("a zoom, until the figure is final", [took for each in rest for took in each[2]], 300),
        Row("the first page: largest paint", "ms", (first[0],), None, None),
        Row("the first page: its longest task", "ms", (first[1],), None, None),
    ]


def _measure(page: Page, address: str) -> tuple[float, float, list[float]]:
    """Return largest contentful paint and longest task of a page including zooms, and each zoom's time, in
    milliseconds.
    """
    page.goto(address)
    page.locator('#figure[data-drawn="true"]').wait_for()
    page.wait_for_timeout(SETTLING_MS)
    # A click ends the search for the largest paint.
    paints: list[Any] = page.evaluate("paints")
    zooms = []
    for _ in range(ZOOMS):
        zooms.append(page.evaluate(ZOOM))
        page.wait_for_timeout(SETTLING_MS)
    return paints[-1], max(page.evaluate("tasks"), default=0.0), zooms
