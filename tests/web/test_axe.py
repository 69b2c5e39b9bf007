"""axe finds no problem and no page is wider than its window: one width and theme by day, all at night."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from axe_playwright_python.sync_playwright import Axe
from cli.command import TEXT
from fleet.sets import MANY, READER, run_fleet
from playwright.sync_api import Browser, Page, expect
from watch.test_live import free_port
from web.browsing import TOKEN, OpenPage, Serve
from web.crafted import API, many_connections
from web.test_weight import SLOW_READER

VIEWS = [(width, theme) for width in (375, 1440, 2560) for theme in ("dark", "light")]


def seen_by_day(*by_day: int | str) -> pytest.MarkDecorator:
    """Request every width and theme, all but one of them at night."""
    views = [view if view == by_day else pytest.param(*view, marks=pytest.mark.nightly) for view in VIEWS]
    return pytest.mark.parametrize(("width", "theme"), views)


def found_by_axe(page: Page) -> list[Any]:
    found = Axe().run(page).response["violations"]
    return [(each["id"], [node["target"] for node in each["nodes"]]) for each in found]


def check_all(page: Page, what: str) -> None:
    """Assert that axe finds no problem, and that the page is no wider than its window."""
    assert found_by_axe(page) == [], what
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), what


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data set of two captures and an unreadable file."""
    folder = tmp_path_factory.mktemp("fleet") / "set"
    run_fleet(READER, MANY, TEXT, "-o", folder, status=3, starts=True)
    return folder


@seen_by_day(375, "dark")
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
        *(f"/pair?a={slow}&b={slow}", f"/references?capture={slow}&connection=0"),
        *(f"/captures/{many}", f"/captures/{slow}/connections/0"),
        *(f"/captures/{slow}/connections/0/whatif", f"/captures/{slow}/connections/0/whatif?rtt_ms=1"),
    ):
        page.goto(path)
        for figure in page.locator("#figure").all():
            expect(figure).to_have_attribute("data-drawn", "true")
        check_all(page, path)


@pytest.mark.nightly
@seen_by_day(1440, "light")
def test_axe_finds_nothing_on_pages_that_few_services_have(
    serve: Serve, open_page: OpenPage, browser: Browser, dataset: Path, width: int, theme: str
) -> None:
    """Logins, share links, an unreachable recorder, a data set, a capture without files, and missing pages."""
    address, (slow,) = serve(SLOW_READER, token=TOKEN, watch=f"http://127.0.0.1:{free_port()}", fleet=dataset)
    with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=None) as client:
        share = f"{API}/captures/{slow}/shares"
        shared = [client.post(share, json={"days": 1, "anonymise": each}).json()["path"] for each in (True, False)]
        empty = client.post(f"{API}/captures", json={"name": "without files"}).json()["id"]
    page = open_page(address, width=width, scheme=theme)
    for path in ("/login", *shared):
        page.goto(path)
        check_all(page, path)
    page.goto("/login")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Captures")
    for path in ("/", "/tokens", "/fleet", "/fleet?by=pair", f"/captures/{empty}"):
        page.goto(path)
        check_all(page, path)
    page.goto("/watch")
    expect(page.get_by_role("status").first).to_contain_text("does not answer")
    check_all(page, "/watch")
    # On separate pages: the browser reports failed requests on the console.
    with browser.new_context(viewport={"width": width, "height": 900}, base_url=address, color_scheme=theme) as context:
        bare = context.new_page()
        bare.goto("/login")
        bare.get_by_label("Token").fill("wrong")
        bare.get_by_role("button", name="Log in").click()
        expect(bare.get_by_role("alert")).to_have_text("Wrong token.")
        check_all(bare, "wrong token")
        bare.get_by_label("Token").fill(TOKEN)
        bare.get_by_role("button", name="Log in").click()
        for path in ("/nowhere", "/captures/none", "/rules/TW000"):
            bare.goto(path)
            check_all(bare, path)
