"""A change tried on a twin by the service: in a real kernel, within limits, and on the page."""

import asyncio
import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient
from live import until
from playwright.sync_api import expect
from reference import NO_LAB, ROOT
from web.browsing import OpenPage, Serve
from web.conftest import MakeClient
from web.crafted import API, analysed
from web.test_axe import check_all

from tcpwin.lab import kernel_path
from tcpwin_web.jobs.whatif import WhatIfQuery
from tcpwin_web.security.scopes import Scope, needed_scope

LEFT = ROOT / "tests" / "paths" / "send-buffer-left.zip"
SLOW_READER = ROOT / "captures" / "lab" / "slow-reader.pcap.gz"
NARROW = ROOT / "captures" / "lab" / "receive-buffer-64k.pcap.gz"
WIDER = {"setting": "receiver.tcp_rmem=64M"}
TRUE_NS = 2_120_000_000
"""Duration on the real path with a larger receive buffer and the sender's unchanged."""

built = pytest.mark.skipif(not kernel_path().is_file(), reason=f"{NO_LAB} here")


def place(id: str) -> str:
    return f"{API}/captures/{id}/connections/0/twin"


def page_of(client: TestClient, id: str, **query: Any) -> str:
    answer = client.get(f"/captures/{id}/connections/0/whatif", params=query)
    assert answer.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", answer.text))


def ended(client: TestClient, id: str, **query: Any) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        answer: dict[str, Any] = client.get(place(id), params=query).json()
        return {} if answer["status"] in ("waiting", "running") else answer

    return dict(until(look))


@pytest.mark.nightly
@built
def test_a_twin_is_run_and_its_answer_kept(make_client: MakeClient) -> None:
    client = make_client()
    id = analysed(client, LEFT.read_bytes(), LEFT.name)
    assert client.get(place(id), params=WIDER).json()["status"] == "none"
    assert "Run the twin" in page_of(client, id, rmem="64M")
    assert client.get(f"{place(id)}/figure", params=WIDER).status_code == 404
    started = client.post(place(id), params=WIDER)
    assert started.status_code == 202
    assert started.json()["status"] in ("waiting", "running")
    # A second request waits for the same run.
    assert client.post(place(id), params=WIDER).status_code == 202
    assert "Cancel" in page_of(client, id, rmem="64M")
    answer = ended(client, id, **WIDER)
    assert answer["status"] == "done", answer["failure"]
    twin = answer["twin"]
    assert twin["is_twin"]
    assert twin["score"] > 0.95
    assert twin["duration_ns"]["low"] <= TRUE_NS <= twin["duration_ns"]["high"]
    assert twin["change"] == "with receiver.tcp_rmem=64M"
    assert "bundle" not in twin["as_it_was"]
    rows = {name: cells for name, *cells in twin["rows"]}
    assert rows["limited by"] == ["receive window", "receive window", "congestion window"]
    assert {"throughput", "window: mean, most", "zero windows: count, time"} <= rows.keys()
    page = page_of(client, id, rmem="64M")
    for words in (*rows["throughput"], "congestion window", "it is a twin", "Run it again", "Similarity"):
        assert words in page
    drawn = client.get(f"{place(id)}/figure", params={**WIDER, "theme": "dark"}).json()
    assert [each["name"] for each in drawn["data"]] == ["captured", "twin", "with receiver.tcp_rmem=64M"]
    captured, same, changed = (each["x"][-1] for each in drawn["data"])
    assert same == pytest.approx(captured, rel=0.1)
    assert changed < 0.75 * captured
    picture = client.get(f"{place(id)}/figure", params={**WIDER, "format": "svg", "width": 700})
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert "<script" not in picture.text
    # Another change is another twin.
    assert client.get(place(id)).json()["status"] == "none"
    actions = [each["action"] for each in client.get(f"{API}/audit").json()["entries"]]
    assert "twin.start" in actions


@built
def test_who_asks_in_the_same_moment_waits_for_the_same_run(make_client: MakeClient) -> None:
    client = make_client()
    id = analysed(client, LEFT.read_bytes(), LEFT.name)
    twins = client.app.state.service.twins

    async def ask_at_once() -> tuple[set[str], int]:
        states = await asyncio.gather(*(twins.start(id, 0, WhatIfQuery()) for _ in range(3)))
        running = [each.get_coro() for each in asyncio.all_tasks()]
        count = sum(getattr(each, "__qualname__", "") == "Twins._run" for each in running)
        await twins.cancel(id, 0, WhatIfQuery())
        return {each.status for each in states}, count

    assert client.portal.call(ask_at_once) == ({"waiting"}, 1)


@pytest.mark.nightly
@built
def test_a_twin_that_runs_is_cancelled(make_client: MakeClient) -> None:
    client = make_client()
    id = analysed(client, SLOW_READER.read_bytes(), SLOW_READER.name)
    query = {"lift": "receiver_application"}
    client.post(place(id), params=query)
    answer = until(lambda: (now := client.get(place(id), params=query).json())["progress"] and now)
    assert answer["status"] == "running"
    assert 0 <= answer["progress"]["share"] < 1
    assert client.delete(place(id), params=query).json()["status"] == "none"
    assert ended(client, id, **query)["status"] == "none"
    # A queued twin is not started.
    client.post(place(id), params=query)
    assert client.delete(place(id), params=query).json()["status"] == "none"


@built
def test_a_twin_that_runs_too_long_is_ended(make_client: MakeClient) -> None:
    client = make_client(job_seconds=4)
    id = analysed(client, SLOW_READER.read_bytes(), SLOW_READER.name)
    client.post(place(id))
    answer = ended(client, id)
    assert answer["status"] == "failed"
    assert "4 s" in answer["failure"]
    assert "this service allows" in answer["failure"]
    assert answer["failure"] in page_of(client, id)


@built
def test_a_twin_with_too_much_memory_is_not_begun(make_client: MakeClient) -> None:
    """A buffer of 512 MiB needs hosts of 4 GiB."""
    client = make_client(job_memory_bytes=1 << 30)
    id = analysed(client, LEFT.read_bytes(), LEFT.name)
    query = {"setting": "receiver.tcp_rmem=512M"}
    client.post(place(id), params=query)
    answer = ended(client, id, **query)
    assert answer["status"] == "failed"
    assert "need 4.29 GB of memory" in answer["failure"]


@built
def test_limits_that_the_run_cannot_lift_are_reported(make_client: MakeClient) -> None:
    client = make_client()
    id = analysed(client, LEFT.read_bytes(), LEFT.name)
    client.post(place(id), params={"lift": "path_policer"})
    answer = ended(client, id, lift="path_policer")
    assert (answer["status"], answer["twin"]) == ("failed", None)
    assert "the run has no policer" in answer["failure"]
    client.post(place(id), params={"setting": "sender.tcp_rmem=1M"})
    assert "bounds nothing here" in ended(client, id, setting="sender.tcp_rmem=1M")["failure"]


def test_without_the_kernel_nothing_runs_and_the_page_says_how_to_build_it(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    client = make_client()
    id = analysed(client, LEFT.read_bytes(), LEFT.name)
    page = page_of(client, id, rmem="64M")
    assert "Run the twin" not in page
    assert "tcpwin lab build" in page
    assert "--set receiver.tcp_rmem=64M --each --twin runs" in page
    refused = client.post(place(id), params=WIDER)
    assert refused.status_code == 409
    assert "tcpwin lab build" in refused.json()["detail"]
    assert client.get(place(id)).json()["kernels"] == []


def test_each_kernel_that_is_built_is_a_choice(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The receiver's kernel is unknown, so the default 6.1 is used. A page shows one chosen kernel."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "tcpwin").mkdir()
    client = make_client()
    id = analysed(client, LEFT.read_bytes(), LEFT.name)
    for series in ("7.3", "6.1"):
        assert f"on Linux {series}" not in page_of(client, id)
        kernel_path(series).touch()
    page = page_of(client, id, rmem="64M", kernel="7.3")
    buttons = re.findall(r'data-method="POST" data-url="([^"]+)" data-then="([^"]+)">([^<]+)</button>', page)
    assert [said for _, _, said in buttons] == ["Run the twin on Linux 6.1", "Run the twin on Linux 7.3"]
    asked = [parse_qs(urlsplit(url).query) for url, _, _ in buttons]
    assert asked == [{"setting": [WIDER["setting"]]}, {"setting": [WIDER["setting"]], "kernel": ["7.3"]}]
    then = [parse_qs(urlsplit(url).query) for _, url, _ in buttons]
    assert then == [{"rmem": ["64M"]}, {"rmem": ["64M"], "kernel": ["7.3"]}]
    assert '<input type="hidden" name="kernel" value="7.3">' in page
    assert client.get(place(id)).json()["kernels"] == ["6.1", "7.3"]
    refused = client.post(place(id), params={"kernel": "6.12"})
    assert refused.status_code == 409
    assert "kernel 6.12 is not built on this server: run `tcpwin lab build --kernel 6.12`" in refused.json()["detail"]
    assert client.post(place(id), params={"kernel": "5.15"}).status_code == 422
    kernel_path("6.1").unlink()
    page = page_of(client, id)
    assert "Run the twin on Linux 7.3" in page
    assert (
        "Linux 6.1 counts receive memory as the receiver's does, as far as its kernel is known; it is not built" in page
    )


@built
@pytest.mark.skipif(not kernel_path("7.3").is_file(), reason=f"{NO_LAB} here")
def test_twins_on_two_kernels_are_two_answers(make_client: MakeClient) -> None:
    client = make_client()
    id = analysed(client, LEFT.read_bytes(), LEFT.name)
    for kernel in ({}, {"kernel": "7.3"}):
        client.post(place(id), params={**WIDER, **kernel})
    twins = [ended(client, id, **WIDER, **kernel)["twin"] for kernel in ({}, {"kernel": "7.3"})]
    assert [each["kernel"] for each in twins] == ["6.1", "7.3"]
    assert twins[0]["doubts"] == []
    assert "it ran on Linux 7.3, and" in " ".join(twins[1]["doubts"]) or not twins[1]["is_twin"]
    assert "Linux 7.3" in page_of(client, id, rmem="64M", kernel="7.3")
    assert "Linux 7.3 on" not in page_of(client, id, rmem="64M")


def test_without_a_change_there_is_no_twin(client: TestClient, capture: bytes) -> None:
    id = analysed(client, LEFT.read_bytes(), LEFT.name)
    assert "By a twin" not in page_of(client, id, rmem="much")
    assert "By a twin" in page_of(client, id, lift="receiver_window")
    assert client.post(f"{API}/captures/{id}/connections/9/twin").status_code == 404
    assert client.get(place(id), params={"setting": "receiver.tcp_rmem"}).status_code == 422
    assert "By a twin" not in page_of(client, analysed(client, capture))


def test_who_may_add_captures_may_run_twins() -> None:
    path = f"{API}/captures/k3QWqxB0yJ8s2rTn/connections/0/twin"
    assert needed_scope("GET", path) is Scope.READ
    assert needed_scope("POST", path) is Scope.UPLOAD
    assert needed_scope("DELETE", path) is Scope.UPLOAD
    assert needed_scope("POST", f"{path}/figure") is Scope.ADMIN


@pytest.mark.nightly
@built
@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1440, "light")])
def test_a_twin_is_run_in_the_browser(show: Serve, open_page: OpenPage, width: int, scheme: str) -> None:
    address, (id,) = show(NARROW.read_bytes())
    page = open_page(address, width=width, scheme=scheme)
    page.goto(f"/captures/{id}/connections/0/whatif")
    page.get_by_label("Receiver's tcp_rmem, maximum").fill("64M")
    page.get_by_role("button", name="Predict").click()
    page.get_by_role("button", name="Run the twin").first.click()
    expect(page.get_by_role("progressbar", name="Runs of the twin")).to_be_visible()
    check_all(page, "while it runs")
    table = page.get_by_role("region", name="Side by side")
    expect(table).to_be_visible()
    expect(table.get_by_role("columnheader")).to_contain_text(["Linux", "captured", "twin"])
    figure = page.get_by_role("group", name="Bytes acknowledged over time")
    figure.scroll_into_view_if_needed()
    expect(figure).to_have_attribute("data-drawn", "true")
    check_all(page, "when it is done")
    # The address still contains the query, so it can be shared.
    assert "rmem=64M" in page.url
    page.get_by_role("button", name="Run it again").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Run the twin").first).to_be_visible()
