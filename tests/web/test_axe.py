"""Every page as axe sees it, at three widths and in both themes, and none wider than its window."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from web.browsing import OpenPage, Serve
from web.crafted import many_connections
from web.test_weight import SLOW_READER

VIEWS = [
    (375, "dark"),
    (1440, "light"),
    *(pytest.param(*view, marks=pytest.mark.nightly) for view in ((375, "light"), (1440, "dark"))),
    *(pytest.param(2560, theme, marks=pytest.mark.nightly) for theme in ("light", "dark")),
]


def found_by_axe(page: Page) -> list[Any]:
    found = Axe().run(page).response["violations"]
    return [(each["id"], [node["target"] for node in each["nodes"]]) for each in found]


@pytest.mark.parametrize(("width", "theme"), VIEWS)
def test_axe_finds_nothing(show: Serve, open_page: OpenPage, width: int, theme: str) -> None:
    address, (slow, many) = show(SLOW_READER, many_connections(150))
    page = open_page(address, width=width, scheme=theme)
    pair = "/history?a=10.0.0.1&b=198.51.100.2"
    for path in (
        *(
            "/",
            "/?search=nothing",
            "/search",
            "/search?address=x",
            pair,
            "/upload",
            "/tokens",
            "/rules",
            "/rules/TW201",
        ),
        *("/references", "/compare", f"/compare?old={slow}&new={slow}", "/pair", f"/captures/{slow}"),
        *(f"/captures/{many}", f"/captures/{slow}/connections/0"),
        *(f"/captures/{slow}/connections/0/whatif", f"/captures/{slow}/connections/0/whatif?rtt_ms=1"),
    ):
        page.goto(path)
        if path.endswith("/connections/0"):
            expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")
        assert found_by_axe(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
