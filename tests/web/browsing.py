"""Fixtures of the browser tests: pages, and services that show captures."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from live import HANG_S, until
from playwright.sync_api import Browser, Page, expect
from web.crafted import API, analysed
from web.running import Host, hosted

WAIT_MS = HANG_S * 1000
TOKEN = "a token of these tests"
Serve = Callable[..., tuple[str, list[str]]]
OpenPage = Callable[..., Page]
expect.set_options(timeout=WAIT_MS)


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Open pages, and fail the test if one writes to its console. All are closed with the test."""
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
def serve(host: Host, tmp_path: Path) -> Serve:
    """Start a service that shows the given captures; return its address and their ids, in order."""

    def start(*captures: bytes, **settings: Any) -> tuple[str, list[str]]:
        paths = [tmp_path / f"capture-{number}.pcap" for number in range(len(captures))]
        for path, content in zip(paths, captures, strict=True):
            path.write_bytes(content)
        address = host(*paths, **settings)
        headers = {"Authorization": f"Bearer {settings['token']}"} if "token" in settings else {}

        def ids() -> list[str]:
            found = httpx2.get(f"{address}{API}/captures", headers=headers, timeout=None).json()["captures"]
            done = {each["name"]: each["id"] for each in found if each["status"] == "done"}
            return [done[path.name] for path in paths] if len(done) == len(paths) else []

        return address, until(ids) if paths else []

    return start


@pytest.fixture(scope="session")
def show(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start one service shared by tests that change nothing; it keeps every capture."""
    ids: dict[bytes, str] = {}
    with hosted(tmp_path_factory.mktemp("shown")) as address, httpx2.Client(base_url=address, timeout=None) as client:

        def start(*captures: bytes) -> tuple[str, list[str]]:
            for content in captures:
                if content not in ids:
                    ids[content] = analysed(client, content, f"capture-{len(ids)}.pcap")
            return address, [ids[content] for content in captures]

        yield start
