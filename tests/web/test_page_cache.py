"""Rendered parts of pages are cached, and never shown for another query, capture or analysis."""

import asyncio
import re

from fastapi.testclient import TestClient
from markupsafe import Markup
from web.crafted import API, analysed, many_connections, settle

from tcpwin_web.pages.cache import PageCache


def table(client: TestClient, id: str, query: str = "") -> list[str]:
    """Return the connection numbers shown on a capture's page."""
    page = client.get(f"/captures/{id}?{query}", headers={"accept": "text/html"}).text
    return re.findall(rf'data-href="/captures/{id}/connections/(\d+)"', page)


def test_each_question_has_its_own_table(client: TestClient, capture: bytes) -> None:
    few, many = analysed(client, capture), analysed(client, many_connections(120))
    for _ in range(2):
        assert table(client, few) == ["0"]
        assert len(table(client, many)) == 100
        assert len(table(client, many, "offset=100")) == 20
        assert table(client, many, "sort=id") == [str(number) for number in range(100)]
        assert table(client, many, "sort=-id") == [str(number) for number in range(119, 19, -1)]
        assert table(client, many, "port=1") == []


def test_a_repeated_analysis_has_a_new_table(client: TestClient, capture: bytes) -> None:
    id = analysed(client, capture)
    results = client.app.state.service.data.results(id)  # type: ignore[attr-defined]
    assert table(client, id) == ["0"]
    before = (results / "capture.json").stat()
    assert client.post(f"{API}/captures/{id}/analysis").status_code == 202
    assert settle(client, id)["status"] == "done"
    after = (results / "capture.json").stat()
    assert (before.st_ino, before.st_mtime_ns) != (after.st_ino, after.st_mtime_ns)
    assert table(client, id) == ["0"]


def test_the_part_that_was_wanted_longest_ago_goes_first() -> None:
    drawn: list[str] = []

    async def look() -> None:
        cache = PageCache(most_characters=25)

        async def draw(name: str) -> Markup:
            drawn.append(name)
            return Markup(name * 10)

        for name in "abacab":
            assert await cache.get(name, lambda name=name: draw(name)) == name * 10

    asyncio.run(look())
    # Two fit: c replaced b, which is rendered again.
    assert "".join(drawn) == "abcb"
