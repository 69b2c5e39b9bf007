"""Reports of captures, and a browser that looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from analysis.bundled import CAPTURES
from live import HANG_S

import tcpwin

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"


@pytest.fixture(scope="module")
def browser(tool: Callable[[str], str]) -> Iterator[Browser]:
    """Return the system's Chromium, without a window. Of a module: while it runs, no other event loop may."""
    from playwright.sync_api import sync_playwright

    path = tool("chromium")
    arguments = ["--no-sandbox", "--disable-gpu"]
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=arguments, timeout=HANG_S * 1000)
        yield found
        found.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Return the path of a capture's report as HTML; each is made once."""
    folder = tmp_path_factory.mktemp("reports")
    made: dict[Path, Path] = {}

    def page(capture: Path) -> Path:
        if capture not in made:
            made[capture] = folder / f"{len(made)}.html"
            tcpwin.analyze(capture).report(made[capture])
        return made[capture]

    return page
