"""Pages of a browser, and a service of captures for them: what tests of pages begin with."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx2
import pytest
from live import HANG_S, until
from playwright.sync_api import Browser, Page, expect
from web.crafted import API
from web.running import MakeServer, start_server

WAIT_MS = HANG_S * 1000
TOKEN = "a token of these tests"
Serve = Callable[..., tuple[str, list[str]]]
OpenPage = Callable[..., Page]
expect.set_options(timeout=WAIT_MS)


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Open pages that say nothing on their console; all are closed with the test."""
    said: list[str] = []
    pages: list[Page] = []

    def make(
        address: str, *, width: int = 1280, scheme: str = "light", zone: str = "Asia/Kathmandu", has_touch: bool = False
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            has_touch=has_touch,
            is_mobile=has_touch,
            base_url=address,
            color_scheme=scheme,
            timezone_id=zone,
        )
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        pages.append(page)
        return page

    yield make
    for page in pages:
        page.context.close()
    assert said == []


@pytest.fixture
def serve(make_server: MakeServer, tmp_path: Path) -> Serve:
    """Start a service with the given captures; returns its address and their ids, in order."""

    return partial(_serve, make_server, tmp_path)


@pytest.fixture(scope="module")
def show(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """As `serve`, for tests that change nothing: all of a file look at one service of the same captures."""
    made: dict[tuple[bytes, ...], tuple[str, list[str]]] = {}
    with ExitStack() as stack:

        def start(*captures: bytes) -> tuple[str, list[str]]:
            if captures not in made:
                folder = tmp_path_factory.mktemp("shown")
                made[captures] = _serve(partial(start_server, stack, folder / "served"), folder, *captures)
            return made[captures]

        yield start


def _serve(make_server: MakeServer, folder: Path, *captures: bytes, **environment: str) -> tuple[str, list[str]]:
    names = []
    for number, content in enumerate(captures):
        names.append(f"capture-{number}.pcap")
        (folder / names[-1]).write_bytes(content)
    _, address = make_server(*(folder / name for name in names), **environment)
    headers = {"Authorization": f"Bearer {TOKEN}"} if environment else {}

    def ids() -> list[str]:
        found = httpx2.get(f"{address}{API}/captures", headers=headers, timeout=None).json()["captures"]
        done = {each["name"]: each["id"] for each in found if each["status"] == "done"}
        return [done[name] for name in names] if done.keys() >= set(names) else []

    # Given none, it shows the bundled ones: nobody waits for them.
    return address, until(ids) if names else []
