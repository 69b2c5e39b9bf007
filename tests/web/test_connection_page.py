"""The page of a connection: answer, fix and figure on the first screen, the rest in tabs with addresses."""

import re

import pytest
from playwright.sync_api import Page, expect
from reference import ROOT
from web.browsing import OpenPage, Serve
from web.conftest import MakeClient
from web.crafted import analysed
from web.test_journey import drag

from tcpwin_web.pages.filters import commands_in, is_runnable

STALL = (ROOT / "captures" / "lab" / "zero-window-stall.pcap.gz").read_bytes()
UNSCALED = ROOT / "captures" / "lab" / "no-window-scaling.pcap.gz"
MOST_FIGURE_PX, MOST_PAGE_BYTES = 250, 100_000
TABS = ["findings", "budget", "measured", "references", "events", "segments", "notes"]
PLACES = """() => {
  const figure = document.getElementById("figure"), { l } = figure._fullLayout._size;
  const box = figure.getBoundingClientRect(), axis = figure._fullLayout.xaxis;
  const life = (figure.dataset.end - figure.dataset.start) / 1e9;
  const [from, to] = [0, life].map((each) => box.left + l + axis.c2p(each));
  const drawn = document.querySelector("#life .drawn:not([hidden])").getBoundingClientRect();
  return { top: box.top + scrollY, from, to, left: drawn.left, right: drawn.right };
}"""


def opened(page: Page, path: str) -> None:
    page.goto(path)
    expect(page.locator("#figure")).to_have_attribute("data-drawn", "true")


def test_tabs_are_links_that_the_server_knows(make_client: MakeClient) -> None:
    client = make_client()
    id = analysed(client, UNSCALED.read_bytes())
    place = f"/captures/{id}/connections/0"
    for query, shown in (("", "findings"), ("?tab=events", "events"), ("?frame=3", "segments")):
        page = client.get(place + query).text
        assert len(page) < MOST_PAGE_BYTES
        assert re.findall(r'href="\?tab=(\w+)"', page) == TABS
        assert re.findall(r'data-tab="(\w+)" aria-current', page) == [shown]
        assert re.findall(r'data-part="(\w+)">', page) == [shown]
    # The fix of its finding, as commands to copy.
    assert 'data-copy="sysctl -w net.ipv4.tcp_window_scaling=1"' in page
    assert client.get(f"{place}?tab=nowhere").status_code == 422


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("sysctl -w net.ipv4.tcp_window_scaling=1", True),
        ("nstat -az TcpExtListenOverflows", True),
        ("tcpwin pair A B", False),
        ("tcpdump -s 128 -w FILE", False),
        ("docker run --sysctl net.ipv4.tcp_rmem=1 ...", False),
        ("ip route change <route> initcwnd 10", False),
    ],
)
def test_only_whole_commands_are_offered(command: str, runs: bool) -> None:
    assert is_runnable(command) == runs
    assert commands_in(f"Try `{command}` or `tcp_rmem`.") == ([command] if runs else [])


def test_the_first_screen_has_the_answer_and_the_figure(show: Serve, open_page: OpenPage) -> None:
    address, (id,) = show(STALL)
    place = f"/captures/{id}/connections/0"
    page = open_page(address, width=1440)
    opened(page, place)
    places = page.evaluate(PLACES)
    assert places["top"] <= MOST_FIGURE_PX
    # The overview has the figure's time axis.
    assert (places["left"], places["right"]) == pytest.approx((places["from"], places["to"]), abs=1)
    # The pointer in any panel shows the values of all at that time: the window is closed in the middle.
    plot = page.locator("#figure .nsewdrag").first
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    label = page.locator("dl.instant")
    for text in (
        "limitslow reader",
        "receive window0 B",
        "in flight0 B",
        "goodput0 bit/s",
        "smoothed",
        "next frame13,66",
    ):
        expect(label).to_contain_text(text)
    # A span has its own limits, and the gain without the first.
    drag(page, 0.4, 0.6)
    expect(page.locator("#of-span")).to_contain_text(re.compile(r"This span: slow reader \(1\.\d+ s, 100 %\)"))
    expect(page.locator("#of-span")).to_contain_text(re.compile(r"Without slow reader .* sooner"))
    # Tabs keep the span, and old links to a part open its tab.
    page.get_by_role("link", name="Events", exact=True).click()
    expect(page).to_have_url(re.compile("start_ns=.*tab=events"))
    expect(page.locator("#events")).to_be_visible()
    expect(page.locator("#findings")).to_be_hidden()
    page.go_back()
    expect(page.locator("#findings")).to_be_visible()
    opened(page, f"{place}#budget")
    expect(page.locator("#budget")).to_be_visible()
    expect(page.locator("[data-tab=budget]")).to_have_attribute("aria-current", "true")


@pytest.mark.nightly
def test_a_phone_shows_answer_and_fix_first(show: Serve, open_page: OpenPage) -> None:
    address, (id,) = show(STALL)
    page = open_page(address, width=375, has_touch=True)
    opened(page, f"/captures/{id}/connections/0")
    for place in (".verdict .lead", ".verdict [data-copy]"):
        expect(page.locator(place)).to_be_in_viewport(ratio=1)
    bar = page.locator(".bar").bounding_box()
    assert bar is not None
    assert bar["height"] < 60
