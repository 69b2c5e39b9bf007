"""The references page shows published figures next to ours, and the API returns the same."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from web.conftest import MakeClient
from web.crafted import API, analysed

from tcpwin.reference import library, references
from tcpwin.units import rate_text

CAPTURES = Path(__file__).parents[2] / "captures"
CELL = re.compile(r'<t[hd](?: scope="\w+")?(?: data-more="[^"]*")?(?: class="([\w-]+)")?>(.*?)</t[hd]>')


@pytest.fixture
def rows(make_client: MakeClient) -> list[list[str]]:
    """Return the rows of the page's heat maps as text, with the class of each coloured cell."""
    text = make_client().get("/references").text
    found = re.findall(r'<table class="heat">.*?</table>', text, re.DOTALL)
    lines = [line for table in found for line in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)]
    return [[f"{level} {unescape(cell)}".strip() for level, cell in CELL.findall(line)] for line in lines]


def test_the_heat_map_holds_the_figures_of_the_article_and_of_the_lab(rows: list[list[str]]) -> None:
    """Cloudflare's tables of the oscillating reader over 300 ms, and lab-oscil-300ms, as in their files."""
    patched = [row for row in rows if row[:2] == ["300 ms", "patched"]]
    assert patched[0] == [
        *("300 ms", "patched", "published", "heat-0 1–941<br>941<br>941", "heat-0 1–941<br>941<br>941"),
        # The slowest loops reached 298, 82 and 13 of 1,000 Mbit/s in their best second.
        *("heat-2 1–941<br>36–605<br>1–298", "heat-3 1–940<br>2–82<br>292–395", "heat-4 1–940<br>2–13<br>13–33"),
    ]
    assert patched[1][2:] == [
        *("ours", "heat-0 1–941<br>941<br>941–942", "heat-0 1–941<br>896–941<br>941"),
        *("heat-3 1–941<br>321–396<br>5–191", "heat-4 1–941<br>3–9<br>221–283", "heat-4 1–941<br>5–13<br>22–438"),
    ]
    stock = [row for row in rows if row[:2] == ["300 ms", "stock"]]
    assert stock[0][2:] == ["published", "GOOD", "GOOD", "GOOD", "GOOD", "GOOD"]
    queue = [row for row in stock if any("Collapsed" in cell for cell in row)]
    assert queue[0][2:6] == [*("published", "heat-0 0", "heat-0 0", "heat-3 PruneCalled 24<br>RcvCollapsed 490,000")]
    assert queue[1][5] == "heat-4 PruneCalled 24<br>RcvCollapsed 744,409"
    # The article has no table of the stock kernel over 20 ms.
    assert [row[2] for row in rows if row[:2] == ["20 ms", "stock"]] == ["ours"] * 4


def test_every_run_of_the_library_is_in_a_map(make_client: MakeClient) -> None:
    section = make_client().get("/references").text.partition('id="library"')[2].partition("</section>")[0]
    shown = re.findall(r'<td class="heat-\d">(.*?)</td>', section)
    assert len(shown) == len(library())
    of_windows = section.partition("<summary>A small receive buffer</summary>")[2].partition("</details>")[0]
    heads = re.findall(r'<th scope="col">(.*?)</th>', of_windows)
    row = next(line for line in of_windows.split("<tr>") if line.startswith('<th scope="row">200 ms</th>'))
    cells = re.findall(r"<td.*?>(.*?)</td>", row)
    assert cells[heads.index("1.5 Mbit/s") - 1] == rate_text(library()["window-200ms-1.5mbps"].goodput_bps)


def test_every_reference_is_on_the_page_and_in_the_api(make_client: MakeClient) -> None:
    client = make_client()
    page = client.get("/references").text
    document: dict[str, Any] = client.get(f"{API}/references").json()
    assert [each["name"] for each in document["references"]] == list(references())
    for name, known in references().items():
        part = page[page.index(f'id="{name}"') :].partition("</details>")[0]
        assert re.findall(r'<tr><th scope="row">(.*?)</th>', part) == [run.name for run in known.runs]
        one = client.get(f"{API}/references/{name}").json()
        assert [run["name"] for run in one["runs"]] == [run.name for run in known.runs]
    # Two workloads, three round trips, five settings, two kernels; the article has 30 patched and 5 stock runs.
    assert len(document["matrix"]) == 60
    assert sum(cell["published"] is not None for cell in document["matrix"]) == 35
    for cell in document["matrix"]:
        for run in filter(None, (cell["published"], cell["ours"])):
            assert {name: run[name] for name in ("rtt_ns", "adv_win_scale", "is_patched")} == {
                name: cell[name] for name in ("rtt_ns", "adv_win_scale", "is_patched")
            }


def test_a_connection_is_compared_with_the_nearest_run_and_its_verdicts_run(make_client: MakeClient) -> None:
    """Over 85 ms passt's run over 100 ms is nearest; it states no buffer, so the verdict names another."""
    client = make_client()
    id = analysed(client, (CAPTURES / "lab" / "no-window-scaling.pcap.gz").read_bytes())
    page = client.get(f"/captures/{id}/connections/0").text
    table = page[page.index("Comparison with the nearest run and the verdict") :].partition("</table>")[0]
    heads = re.findall(r'<th scope="col">(?:<a href="[^"]*">)?(.*?)(?:</a>)?</th>', table)
    assert heads == ["this connection", "passt-ramps/100ms", "cloudflare-production/iowa-old"]
    rows = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", line) for line in re.findall(r"<tr>(.*?)</tr>", table)]
    assert ["round trip", "85 ms", "100 ms", "121 ms"] in rows
    assert ["throughput", "6.03 Mbit/s", "1.11 Gbit/s", "276 Mbit/s"] in rows

    page = client.get("/references", params={"capture": id, "connection": 0}).text
    # Its 64 KiB match no column of the map, so it spans all. Neither run is in the map, so none is framed. Its colour
    # is its share of the path's rate, 1.05 Gbit/s according to the capture.
    assumed = re.escape("settings not known: 6.03 Mbit/s (best second 6.26 Mbit/s)")
    assert re.search(f'<td class="[^"]+" colspan="5">{assumed}</td>|<td colspan="5" class="[^"]+">{assumed}</td>', page)
    assert "Its row is in the map of its workload" in page
    assert "framed" not in page
    assert ' near"' not in page
