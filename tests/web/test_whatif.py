"""Predictions by the API and as a page agree with the library."""

import html
import json
import re
from typing import Any

from fastapi.testclient import TestClient
from playwright.sync_api import expect
from reference import ROOT
from web.browsing import OpenPage, Serve
from web.crafted import API, analysed

import tcpwin
from tcpwin.limits import LIMIT_NAMES
from tcpwin.paths import describe_whatif, whatif

NARROW = ROOT / "captures" / "lab" / "receive-buffer-64k.pcap.gz"
SLOW_READER = ROOT / "captures" / "lab" / "slow-reader.pcap.gz"
LEFT = ROOT / "tests" / "paths" / "send-buffer-left.zip"


def asked(client: TestClient, id: str, **query: Any) -> Any:
    return client.get(f"{API}/captures/{id}/connections/0/whatif", params=query)


def page_of(client: TestClient, id: str, **query: Any) -> str:
    answer = client.get(f"/captures/{id}/connections/0/whatif", params=query)
    assert answer.status_code == 200
    return html.unescape(re.sub(r"\s+", " ", answer.text))


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_the_api_agrees_with_the_library(client: TestClient) -> None:
    id = analysed(client, NARROW.read_bytes(), NARROW.name)
    connection = tcpwin.analyze(NARROW).connections[0]
    answer = asked(client, id).json()
    assert answer.pop("schema") == "tcpwin/whatif/1"
    assert answer == plain(describe_whatif(whatif(connection, each=True)))
    changed = asked(
        client,
        id,
        setting=["receiver.tcp_rmem=1M", "sender.tcp_congestion_control=bbr"],
        lift=["idle_restart"],
        loss_percent=0.5,
        rtt_ms=50,
        rate_mbps=80,
    ).json()
    expected = whatif(
        connection,
        {"receiver.tcp_rmem": "1M", "sender.tcp_congestion_control": "bbr"},
        lift=["idle_restart"],
        loss_share=0.005,
        round_trip_ns=50e6,
        rate_bps=80e6,
        each=True,
    )
    assert changed["prediction"] == plain(describe_whatif(expected))["prediction"]
    assert len(changed["prediction"]["changes"]) == 6


def test_snapshots_of_a_bundle_are_used(client: TestClient) -> None:
    """The sender's tcp_wmem is at most 60,000 bytes, and limits the flight once the window does not."""
    id = analysed(client, LEFT.read_bytes(), LEFT.name)
    answer = asked(client, id, setting="receiver.tcp_rmem=64M").json()
    sender = answer["path"]["sender"]
    assert sender["settings"]["net.ipv4.tcp_wmem"] == "4096 16384 60000"
    assert answer["prediction"]["limit"] == "send_buffer"
    both = asked(client, id, setting=["receiver.tcp_rmem=64M", "sender.tcp_wmem=64M"]).json()
    assert answer["prediction"]["gain_ns"] < 0.6 * both["prediction"]["gain_ns"]


def test_an_invalid_change_is_refused(client: TestClient) -> None:
    id = analysed(client, NARROW.read_bytes(), NARROW.name)
    for query, said in (
        ({"setting": "receiver.tcp_rmem"}, "not a setting with a value"),
        ({"setting": "sender.tcp_rmem=1M"}, "bounds nothing here"),
        ({"setting": "receiver.colour=blue"}, "is not modelled"),
        ({"lift": "gravity"}, "lift"),
        ({"loss_percent": 100}, "loss_percent"),
        ({"rtt_ms": "nan"}, "rtt_ms"),
        ({"rate_mbps": 0}, "rate_mbps"),
        ({"setting": [f"receiver.tcp_rmem={size}M" for size in range(9)]}, "setting"),
    ):
        answer = asked(client, id, **query)
        assert answer.status_code == 422, query
        assert answer.headers["content-type"] == "application/problem+json"
        assert said in answer.text, query


def test_a_capture_that_cannot_say_says_why(client: TestClient, capture: bytes) -> None:
    id = analysed(client, capture)
    answer = asked(client, id)
    assert answer.status_code == 422
    assert "no prediction is possible" in answer.json()["detail"]
    page = page_of(client, id)
    assert "no prediction is possible" in page
    assert "Each limit lifted alone" not in page
    assert asked(client, id, lift="receiver_window").status_code == 422
    assert client.get(f"{API}/captures/{id}/connections/7/whatif").status_code == 404
    assert client.get(f"/captures/{id}/connections/7/whatif").status_code == 404


def test_the_page_ranks_limits_and_predicts_a_change(client: TestClient) -> None:
    id = analysed(client, NARROW.read_bytes(), NARROW.name)
    assert f'href="/captures/{id}/connections/0/whatif"' in client.get(f"/captures/{id}/connections/0").text
    found = whatif(tcpwin.analyze(NARROW).connections[0], each=True)
    page = page_of(client, id)
    ranked = re.findall(r'/whatif\?lift=(\w+)">([^<]+)</a></th><td class="number">([^<]+)</td>', page)
    assert [(lift, words) for lift, words, _ in ranked] == [
        (each.changes[0].removeprefix("lift "), LIMIT_NAMES[each.changes[0].removeprefix("lift ")])
        for each in found.each
    ]
    assert ranked[0][0] == "receiver_window"
    assert ranked[0][2].endswith(" sooner")
    page = page_of(client, id, rmem="64M", loss_percent="0,5")
    assert "receiver.tcp_rmem=64M" in page
    assert 'value="64M"' in page
    assert f"tcpwin whatif {NARROW.name} --connection 0 --set receiver.tcp_rmem=64M --loss 0.5% --each" in page
    assert f"/api/v1/captures/{id}/connections/0/whatif?setting=receiver.tcp_rmem%3D64M&loss_percent=0.5" in page


def test_the_page_says_what_else_it_needs(client: TestClient) -> None:
    id = analysed(client, SLOW_READER.read_bytes(), SLOW_READER.name)
    page = page_of(client, id, lift="receiver_application")
    assert "enter the path's rate here" in page
    assert "--rate says" not in page
    assert "Without slow reader" in page_of(client, id, lift="receiver_application", rate_mbps="10")


def test_the_page_preserves_the_input_and_names_the_mistake(client: TestClient) -> None:
    id = analysed(client, NARROW.read_bytes(), NARROW.name)
    for query, said in (
        ({"rmem": "many"}, "many"),
        ({"loss_percent": "lots"}, "the loss must be a number, not 'lots'"),
        ({"loss_percent": "100"}, "the loss must be from 0 to 99.99, not 100"),
        ({"rtt_ms": "-1"}, "the round trip must be from"),
        ({"rate_mbps": "nan"}, "the rate must be from"),
        ({"algorithm": "<script>"}, "<script>"),
    ):
        page = page_of(client, id, **query)
        warning = re.search(r'<p class="warning" role="alert">([^\n]*?)</p>', page)
        assert warning, query
        assert said.lower() in warning[1].lower()
        assert "Each limit lifted alone" in page
        if "algorithm" not in query:
            (typed,) = query.values()
            assert f'value="{typed}"' in page


def test_a_change_is_tried_in_the_browser(show: Serve, open_page: OpenPage) -> None:
    address, (id,) = show(NARROW.read_bytes())
    page = open_page(address)
    page.goto(f"/captures/{id}/connections/0")
    page.get_by_role("link", name="What if …").click()
    expect(page.get_by_role("heading", name="Each limit lifted alone")).to_be_visible()
    page.get_by_label("Receiver's tcp_rmem, maximum").fill("64M")
    page.get_by_role("button", name="Predict").click()
    expect(page.get_by_role("heading", name="receiver.tcp_rmem=64M")).to_be_visible()
    expect(page.locator(".lead")).to_contain_text("sooner")
    page.get_by_role("link", name="receive window").click()
    expect(page.get_by_role("heading", name="Without receive window")).to_be_visible()
    page.get_by_role("link", name="Clear").click()
    expect(page.get_by_role("heading", name="Try a change")).to_be_visible()
