"""The page of a capture: answer, table above the fold, findings by kind, filters, Back."""

import gzip
import re
import time
from collections.abc import Iterator
from html import unescape

import pytest
from fastapi.testclient import TestClient
from live import until
from playwright.sync_api import expect
from reference import ROOT
from scapy.layers.inet import TCP
from spread import some_by_day
from web.browsing import OpenPage, Serve
from web.crafted import CLIENT, SERVER, analysed, many_connections, segment, written, zero_window_connection
from web.test_journey import check

import tcpwin
from tcpwin.figures import SKETCH_BUCKETS, draw_sketch
from tcpwin.limits import GROUP_NAMES, Severity
from tcpwin.render import group_findings, view_verdict
from tcpwin.units import begin, bytes_text, count_text, rate_text, time_text
from tcpwin_web import Settings, create_app

LAB = ROOT / "captures" / "lab"
STALLS = 7
"""Connections of the crafted capture that wait for a closed window, each slightly longer than the previous."""


def many_stalls() -> bytes:
    """Connections that begin a second apart; in each the server closes its window for at least 2.5 s."""
    packets = []
    for number in range(STALLS):
        opened_s = 2.8 + 0.1 * number
        own = [
            *zero_window_connection()[:6],
            segment(opened_s, SERVER, "A", 5000, 3000, window=2000),
            segment(opened_s + 0.05, CLIENT, "A", 3000, 5000, window=8000, length=1000),
            segment(opened_s + 0.05, CLIENT, "PA", 4000, 5000, window=8000, length=1000),
            segment(opened_s + 0.1, SERVER, "A", 5000, 5000, window=2000),
            segment(opened_s + 0.15, CLIENT, "FA", 5000, 5000, window=8000),
            segment(opened_s + 0.2, SERVER, "FA", 5000, 5001, window=2000),
            segment(opened_s + 0.2, CLIENT, "A", 5001, 5001, window=8000),
        ]
        for packet in own:
            packet.time += number
            setattr(packet[TCP], "sport" if packet[TCP].sport == CLIENT[1] else "dport", CLIENT[1] + number)
        packets += own
    return written(sorted(packets, key=lambda packet: packet.time))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    app = create_app(Settings(data=tmp_path_factory.mktemp("data"), workers=1))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def failed_connections(silent: int, refused: int, *, ports: int = 1) -> bytes:
    """Return connections whose SYNs nobody answers for 7 s, and some to the same ports that are refused."""
    option = [("MSS", 1000)]
    packets = []
    for number in range(silent + refused):
        own = (
            [segment(delay_s, CLIENT, "S", 999, 0, window=8000, options=option) for delay_s in (0, 1, 3, 7)]
            if number < silent
            else [
                segment(0, CLIENT, "S", 999, 0, window=8000, options=option),
                segment(0.1, SERVER, "RA", 0, 1000, window=0),
            ]
        )
        for packet in own:
            packet.time += number
            ends = ("sport", "dport") if packet[TCP].sport == CLIENT[1] else ("dport", "sport")
            for end, port in zip(ends, (CLIENT[1] + number, SERVER[1] + number % ports), strict=True):
                setattr(packet[TCP], end, port)
        packets += own
    return written(sorted(packets, key=lambda packet: packet.time))


def words(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", page)))


@pytest.mark.parametrize("name", some_by_day(["slow-reader", "idle-restart", "loss-1-percent", "window-scaling"], of=2))
def test_the_answer_comes_first_with_its_numbers(served: TestClient, name: str) -> None:
    path = LAB / f"{name}.pcap.gz"
    id = analysed(served, path.read_bytes(), path.name)
    analysis = tcpwin.analyze(path)
    [connection] = analysis.connections
    verdict, data = connection.verdict, connection.b_to_a
    page = served.get(f"/captures/{id}").text
    answer = words(page.partition('aria-label="Answer"')[2].partition("</section>")[0])
    assert verdict.answer in answer
    assert ("Fix" in answer, "cost" in answer.lower()) == (verdict.is_problem, verdict.is_problem)
    if verdict.is_problem:
        assert f" {view_verdict(verdict).row.cost} " in answer
        assert str(verdict.fix).replace("`", "") in answer
    assert f"duration {time_text(connection.duration_ns)} data {bytes_text(data.acked_bytes or 0)} " in answer
    assert f" {rate_text(data.goodput_bps or 0)} " in answer
    assert verdict.reason in answer
    # The largest group of the time budget comes first.
    assert f"{GROUP_NAMES[connection.budget['b_to_a'].largest]} " in answer.rpartition("top: ")[2].partition("B ")[2]
    assert page.index("Answer") < page.index('id="connections-title"') < page.index('id="findings"')


def test_findings_of_a_kind_are_one_group(served: TestClient) -> None:
    data = many_stalls()
    analysis = tcpwin.analyze(data)
    kinds = {(each.code, each.owner) for each in analysis.findings}
    groups = group_findings(analysis.findings)
    assert {(each.worst.code, each.worst.owner) for each in groups} == kinds
    assert len(groups) == len(kinds)
    for group in groups:
        kind = (group.worst.code, group.worst.owner)
        own = [each for each in analysis.findings if (each.code, each.owner) == kind]
        assert (group.findings, group.cost_ns) == (own, sum(each.cost_ns or 0 for each in own))
    assert [each.cost_ns for each in groups] == sorted((each.cost_ns for each in groups), reverse=True)
    assert groups[0].count == STALLS

    id = analysed(served, data)
    page = served.get(f"/captures/{id}").text
    first = groups[0]
    worst = first.worst
    heading = f"{worst.code} {worst.name} ×{STALLS}, {time_text(first.cost_ns)} in all in {STALLS} connections"
    assert heading in words(page)
    assert page.count('<article class="finding') == len(kinds)


@pytest.mark.nightly
def test_causes_stand_between_the_answer_and_the_connections(served: TestClient) -> None:
    """Each port that failed is a cause; other findings are one cause for each kind."""
    for data in (failed_connections(9, 4), many_stalls()):
        found = tcpwin.analyze(data).findings
        page = served.get(f"/captures/{analysed(served, data)}").text
        assert page.index('aria-label="Answer"') < page.index('id="causes"') < page.index('id="connections-title"')
        causes = page.partition('id="causes"')[2].partition("</section>")[0]
        rows = [words(row) for row in re.findall(r"<tr><th scope=\"row\">.*?</tr>", causes, re.DOTALL)]
        ports = [each for each in found if each.connection is None]
        kinds = [
            each
            for each in group_findings(found)
            if each.worst.connection is not None
            and each.worst.code != "TW413"
            and each.worst.severity >= Severity.WARNING
        ]
        assert len(rows) == len(ports) + len(kinds) > 0
        for each in ports:
            assert any(each.text in row and str(each.remedy and each.remedy.text) in row for row in rows), each.text
        for group in kinds:
            title = f"{begin(group.title)} in {count_text(group.connections, 'connection')} {group.worst.code}"
            assert any(title in row and group.total in row for row in rows), title
        for anchor in re.findall(r'href="#([^"]+)"', causes):
            assert f'id="{anchor}"' in page


def test_causes_say_how_many_ports_are_not_shown(served: TestClient) -> None:
    data = failed_connections(25, 0, ports=5)
    assert sum(each.code == "TW503" and each.connection is None for each in tcpwin.analyze(data).findings) == 5
    causes = (
        served.get(f"/captures/{analysed(served, data)}").text.partition('id="causes"')[2].partition("</section>")[0]
    )
    assert causes.count(" did not answer 5 connections") == 3
    assert "2 more TW503" in words(causes)


def test_a_failed_handshake_says_what_to_look_at_and_has_no_sketch(served: TestClient) -> None:
    refused = served.get(f"/captures/{analysed(served, failed_connections(0, 1))}").text
    assert "Look at next: whether a service listens on 198.51.100.2:80, " in words(refused).replace(" :", ":")
    data = failed_connections(1, 0)
    [unanswered] = [each for each in tcpwin.analyze(data).findings if each.code == "TW503"]
    silent = served.get(f"/captures/{analysed(served, data)}").text
    assert unanswered.remedy
    assert f"Fix: {unanswered.remedy.text} TW503" in words(silent).replace(" :", ":")
    for data in (failed_connections(0, 1), failed_connections(1, 0)):
        id = analysed(served, data)
        # A dash in the table: the sketch was drawn, and is empty.
        until(lambda id=id: 'data-sketch="0">–<' in served.get(f"/captures/{id}").text)
        page = served.get(f"/captures/{id}").text
        assert ('class="sketch"' in page, "top:" in page, "handshake 100 %" in page) == (False, False, True)


def test_numbers_say_whether_they_are_of_the_capture_or_of_a_connection(served: TestClient) -> None:
    data = failed_connections(2, 0)
    page = words(served.get(f"/captures/{analysed(served, data)}").text)
    # A dt precedes its dd.
    assert re.search(r"cost in connection \d ≤ 7 s duration 7 s ", page)
    assert "Whole capture: 8 packets 2 connections 8 s" in page
    path = LAB / "loss-1-percent.pcap.gz"
    [connection] = tcpwin.analyze(path).connections
    id = analysed(served, path.read_bytes(), path.name)
    answer = words(served.get(f"/captures/{id}").text.partition('aria-label="Answer"')[2].partition("</section>")[0])
    # The only connection's answer begins with its limit; the file's size and time are not among its numbers.
    assert connection.verdict.answer in answer
    assert tcpwin.analyze(path).summary.carried not in answer


@pytest.mark.parametrize("name", some_by_day(["slow-reader", "window-scaling"], of=2))
def test_a_link_shows_the_same_answer_without_links(served: TestClient, name: str) -> None:
    path = LAB / f"{name}.pcap.gz"
    id = analysed(served, path.read_bytes(), path.name)
    answer_of(served, id)
    panels = [panel_of(served.get(f"/captures/{id}").text)]
    for is_anonymised in (False, True):
        made = served.post(f"/api/v1/captures/{id}/shares", json={"anonymise": is_anonymised}).json()
        panels.append(panel_of(served.get(made["path"], headers={"accept": "text/html"}).text))
    owner, open_panel, hidden = panels
    # The frames of the evidence lead to segments, which a link does not show.
    assert words(owner).partition("Evidence:")[0] == words(open_panel).partition("Evidence:")[0]
    sketch = re.search(r'<svg class="sketch".*?</svg>', owner, re.DOTALL)
    assert sketch
    assert sketch[0] in open_panel
    assert sketch[0] in hidden
    [connection] = tcpwin.analyze(path).connections
    addresses = (connection.a.address, connection.b.address)
    assert [address in open_panel for address in addresses] == [True, True]
    assert [address in hidden for address in addresses] == [False, False]
    assert not re.findall(r'href="/captures', open_panel + hidden)
    assert re.findall(r"<dd>(.*?)</dd>", owner) == re.findall(r"<dd>(.*?)</dd>", hidden)


def panel_of(page: str) -> str:
    """Return the markup of a page's answer."""
    return page.partition('aria-label="Answer"')[2].partition("</section>")[0]


def test_filters_by_port_and_time(served: TestClient) -> None:
    id = analysed(served, many_stalls())

    def ports(**asked: str) -> list[int]:
        page = served.get(f"/captures/{id}", params={"sort": "id", **asked})
        assert page.status_code == 200
        return [int(each) for each in re.findall(r"192\.0\.2\.1:(\d+) →", page.text.partition('id="rows"')[2])]

    assert ports() == [40000 + number for number in range(STALLS)]
    assert ports(port="40003") == [40003]
    assert len(ports(port="80")) == STALLS
    assert ports(port="4000") == []
    # The first ends 3 s after its start, when the fourth begins.
    assert ports(to="0.5") == [40000]
    assert ports(**{"from": "5.75"}) == [40000 + number for number in range(3, STALLS)]
    assert ports(**{"from": "3.01", "to": "3.5", "search": "192.0.2.1"}) == [40001, 40002, 40003]
    assert ports(limited_by="path_loss") == []
    for wrong in ({"port": "x"}, {"from": "1e3"}, {"to": "-1"}, {"port": "123456"}):
        assert served.get(f"/captures/{id}", params=wrong).status_code == 422


def test_the_table_is_above_the_fold_and_a_row_leads_to_its_connection(show: Serve, open_page: OpenPage) -> None:
    address, (slow, stalls) = show((LAB / "slow-reader.pcap.gz").read_bytes(), many_stalls())
    page = open_page(address, width=1440)
    for id in (slow, stalls):
        page.goto(f"/captures/{id}")
        row = page.locator("#rows tbody tr").first
        box = row.bounding_box()
        assert box["y"] + box["height"] < 900
        expect(row.locator("svg.sketch path.window")).to_have_count(1)
        expect(page.locator(".worst svg.sketch path.window")).to_have_count(1)
    # Sorted by cost: the connection that waited longest comes first.
    expect(page.locator("#rows tbody th").first).to_have_text(str(STALLS - 1))
    page.locator("#rows tbody tr").nth(1).locator("td").nth(4).click()
    expect(page).to_have_url(re.compile(rf"/connections/{STALLS - 2}$"))
    page.go_back()
    page.locator("#rows tbody tr a").first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/connections/{STALLS - 1}$"))


@pytest.mark.nightly
def test_sketches_beyond_the_first_page_come_when_they_are_looked_at(show: Serve, open_page: OpenPage) -> None:
    address, (id,) = show(many_connections(150))
    page = open_page(address)
    page.goto(f"/captures/{id}?offset=100")
    expect(page.locator("#rows tbody tr")).to_have_count(50)
    expect(page.locator("#rows svg.sketch")).to_have_count(50)
    check(page)


@pytest.mark.nightly
def test_back_undoes_what_was_sorted_and_filtered(show: Serve, open_page: OpenPage) -> None:
    address, (id,) = show(many_stalls())
    page = open_page(address)
    page.goto("/")
    page.goto(f"/captures/{id}")
    rows, first = page.locator("#rows tbody tr"), page.locator("#rows tbody th").first
    page.locator("#rows").get_by_role("link", name="#", exact=True).click()
    expect(first).to_have_text(str(STALLS - 1))
    page.get_by_role("link", name="# ↓").click()
    expect(first).to_have_text("0")
    page.get_by_label("Show").select_option("reset")
    expect(rows).to_have_count(0)
    page.go_back()
    expect(rows).to_have_count(STALLS)
    expect(page.get_by_label("Show")).to_have_value("")
    expect(first).to_have_text("0")
    page.go_back()
    expect(first).to_have_text(str(STALLS - 1))
    page.go_forward()
    expect(first).to_have_text("0")
    page.go_back()
    page.go_back()
    expect(page).to_have_url(re.compile(rf"/captures/{id}$"))
    page.go_back()
    expect(page).to_have_url(f"{address}/")


def test_a_rate_that_data_and_duration_do_not_give_says_that_it_is_of_a_part(served: TestClient) -> None:
    """3 MB in 12 ms are 2 Gbit/s, but the server sent at 7.39 in the 3.2 ms after its application answered."""
    path = ROOT / "captures" / "wild" / "http-download.pcapng"
    id = analysed(served, path.read_bytes(), path.name)
    data = tcpwin.analyze(path).connections[0].b_to_a
    assert f"rate, first byte to last {rate_text(data.goodput_bps or 0)} " in answer_of(served, id)
    path = LAB / "no-window-scaling.pcap.gz"
    assert "rate, first byte to last" not in answer_of(served, analysed(served, path.read_bytes(), path.name))


def test_the_picture_says_what_its_colours_mean_and_how_high_it_is(served: TestClient) -> None:
    path = LAB / "zero-window-stall.pcap.gz"
    id = analysed(served, path.read_bytes(), path.name)
    [view] = tcpwin.analyze(path).views([0], buckets=SKETCH_BUCKETS)
    drawn = draw_sketch(view, "b_to_a")
    assert drawn.closed
    assert f"in flight window closed top: {bytes_text(drawn.top_bytes)}" in answer_of(served, id)
    path = LAB / "idle-restart.pcap.gz"
    answer = answer_of(served, analysed(served, path.read_bytes(), path.name))
    assert "window closed" not in answer
    most = tcpwin.analyze(path).connections[0].b_to_a.receive_window_max_bytes
    assert f"receive window (up to {bytes_text(most or 0)})" in answer


def test_other_findings_are_the_answer_where_no_connection_lost_time(served: TestClient) -> None:
    """65 connections, of which 5 were refused; the one with most data has nothing to fix."""
    path = LAB.parent / "wild" / "many-short.pcap.gz"
    id = analysed(served, path.read_bytes(), path.name)
    refused = next(each for each in tcpwin.analyze(path).findings if each.code == "TW502")
    page = served.get(f"/captures/{id}").text
    panel = page.partition('aria-label="Answer"')[2].partition("</section>")[0]
    answer = words(panel)
    assert refused.remedy
    assert f"No connection lost time. Also found: {refused.text}" in answer
    assert f"Fix: {refused.remedy.text.replace('`', '')} {refused.code} {refused.name}" in answer
    assert "Nothing to fix" not in answer
    [anchor] = re.findall(r'<a href="#([^"]*)">TW502 ', panel)
    assert f'id="{anchor}"' in page


def test_a_damaged_file_gets_advice_with_the_answer(served: TestClient) -> None:
    path = LAB.parent / "broken" / "cut-record.pcap"
    id = analysed(served, path.read_bytes(), path.name)
    cut = next(each for each in tcpwin.analyze(path).findings if each.code == "TW605")
    assert cut.remedy
    assert f"Next capture: {cut.remedy.text} TW605" in answer_of(served, id)


def test_a_damaged_file_with_a_problem_says_once_what_to_do(served: TestClient) -> None:
    """The rule that warns of the loss has the same fix as the verdict."""
    content = gzip.decompress((LAB / "loss-1-percent.pcap.gz").read_bytes())
    # From a record header on, no length is possible.
    damaged = content[:200_000] + b"\xff" * 400
    answer = answer_of(served, analysed(served, damaged, "damaged.pcap"))
    assert answer.count("Fix:") == 1
    assert "Copy or record it again" in answer


def answer_of(served: TestClient, id: str) -> str:
    """Return the words of the first panel once its picture is drawn."""
    for _ in range(200):
        page = served.get(f"/captures/{id}").text
        panel = page.partition('aria-label="Answer"')[2].partition("</section>")[0]
        if '<svg class="sketch"' in panel:
            return words(panel)
        time.sleep(0.05)
    raise AssertionError(panel)
