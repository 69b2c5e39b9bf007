"""The page of a connection shows its longest exchanges, each linked to its span in the figures."""

from __future__ import annotations

import re

from reference import ROOT
from web.conftest import MakeClient
from web.crafted import analysed

import tcpwin

HTTP = ROOT / "captures" / "wild" / "http-download.pcapng"


def test_a_connection_shows_its_exchanges(make_client: MakeClient) -> None:
    client = make_client()
    id = analysed(client, HTTP.read_bytes())
    page = client.get(f"/captures/{id}/connections/0").text
    table = tcpwin.analyze(HTTP).connections[0].exchange_table()
    section = page[page.index('aria-labelledby="exchanges"') :].partition("</section>")[0]
    assert "The server took 8.1 ms (frame 6)" in section
    assert re.findall(r'data-frame="(\d+)"', section) == ["4", "6"]
    start_ns = int(table["start_ns"][0])
    assert f"?start_ns={start_ns}&amp;end_ns=" in section
