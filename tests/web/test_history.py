"""A connection's page in Chromium: every view has an address, Back undoes it, and the selection is marked."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, Page, expect
from reference import ROOT
from web.browsing import OpenPage, Serve
from web.test_journey import check, drag

SLOW_READER = (ROOT / "captures" / "lab" / "slow-reader.pcap.gz").read_bytes()
RANGE = "document.getElementById('figure').layout.xaxis.range"
# Names and times of the lines through all panels.
MARKED = """() => {
  const layout = document.getElementById("figure").layout;
  const lines = layout.shapes.filter((each) => each.type === "line" && each.yref === "paper" && each.y0 === 0);
  const names = layout.annotations.map((each) => each.text).filter((text) => /^frame /.test(text));
  return [lines.map((each) => Math.round(each.x0 * 1e6)), names];
}"""


def drawn(page: Page) -> None:
    figure = page.locator("#figure")
    expect(figure).to_have_attribute("data-drawn", "true")
    expect(figure).not_to_have_attribute("aria-busy", "true")


@pytest.mark.nightly
def test_back_undoes_zooming_directions_and_panels(show: Serve, open_page: OpenPage) -> None:
    address, (id,) = show(SLOW_READER)
    page = open_page(address)
    page.goto(f"/captures/{id}")
    page.locator("#rows tbody tr a").first.click()
    drawn(page)
    place = page.url
    drag(page, 0.2, 0.6)
    expect(page).to_have_url(re.compile("start_ns"))
    drawn(page)
    first = page.url
    first_range = page.evaluate(RANGE)
    page.get_by_role("button", name="Zoom in").click()
    expect(page).not_to_have_url(first)
    drawn(page)
    second = page.url
    page.locator(".menu summary").click()
    page.get_by_label("Time and sequence").check()
    expect(page).to_have_url(re.compile("panel=time-sequence"))
    page.get_by_label("Data from").select_option("a_to_b")
    expect(page).to_have_url(re.compile("direction=a_to_b"))
    page.go_back()
    expect(page.get_by_label("Data from")).to_have_value("b_to_a")
    page.go_back()
    expect(page).to_have_url(second)
    expect(page.get_by_label("Time and sequence")).not_to_be_checked()
    page.go_back()
    expect(page).to_have_url(first)
    expect(page.locator("#figure")).not_to_have_attribute("data-shows", re.compile("time-sequence"))
    drawn(page)
    page.wait_for_function(f"Math.abs({RANGE}[0] - {first_range[0]}) < 1e-6")
    page.go_forward()
    expect(page).to_have_url(second)
    page.go_back()
    page.go_back()
    expect(page).to_have_url(place)
    expect(page.locator("#span")).to_have_text("")
    page.go_back()
    expect(page).to_have_url(re.compile(rf"/captures/{id}$"))


@pytest.mark.nightly
def test_frames_are_marked_and_stored_in_the_address(show: Serve, open_page: OpenPage) -> None:
    address, (id,) = show(SLOW_READER)
    page = open_page(address)
    page.goto(f"/captures/{id}/connections/0?frame=3049")
    drawn(page)
    figure, marked = page.locator("#figure"), page.locator("#segments tr.marked")
    expect(figure).to_have_attribute("data-marked", "3049")
    expect(marked.locator("th")).to_have_text("3,049")
    # The line is drawn at the frame's time in the table.
    time_us = round(float((marked.locator("td").first.text_content() or "").replace(",", "")) * 1e6)
    [[line_us], [name]] = page.evaluate(MARKED)
    assert (abs(line_us - time_us) <= 1, name) == (True, "frame 3,049")
    expect(page).to_have_url(re.compile("frame=3049"))
    kept = page.url
    page.reload()
    expect(figure).to_have_attribute("data-marked", "3049")
    expect(page).to_have_url(kept)
    check(page)
    # Type another frame, then go Back.
    page.get_by_role("textbox", name="Frame", exact=True).fill("4571")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(figure).to_have_attribute("data-marked", "4571")
    page.go_back()
    expect(figure).to_have_attribute("data-marked", "3049")
    expect(marked.locator("th")).to_have_text("3,049")


@pytest.mark.nightly
def test_labels_of_neighbouring_frames_do_not_cover_each_other(show: Serve, open_page: OpenPage) -> None:
    address, (id,) = show(SLOW_READER)
    page = open_page(address)
    page.goto(f"/captures/{id}/connections/0?start_ns=0&frame=1&frame=3")
    drawn(page)
    expect(page.locator("#figure")).to_have_attribute("data-marked", "1 3")
    labels = page.locator("#figure .annotation-text-g").filter(has_text=re.compile("^(frame|when)"))
    boxes = [each.bounding_box() for each in labels.all()]
    tops = sorted((box["y"], box["y"] + box["height"]) for box in boxes if box)
    assert len(tops) == 3
    assert all(bottom <= top for (_, bottom), (top, _) in pairwise(tops))


@pytest.mark.nightly
def test_a_finding_shows_its_frames_in_the_figures_by_one_click(show: Serve, open_page: OpenPage) -> None:
    address, (id,) = show(SLOW_READER)
    page = open_page(address)
    page.goto(f"/captures/{id}/connections/0")
    drawn(page)
    finding = page.locator(".finding").first
    frames = [(each.text_content() or "").replace(",", "") for each in finding.locator("a[data-frame]").all()]
    assert len(frames) > 1
    finding.get_by_role("link", name="show in the figures").click()
    expect(page.locator("#figure")).to_have_attribute("data-marked", " ".join(frames[:10]))
    lines, names = page.evaluate(MARKED)
    assert len(lines) == len(names) == len(frames[:10])
    assert lines == sorted(lines)
    page.go_back()
    expect(page.locator("#figure")).to_have_attribute("data-marked", "")


@pytest.mark.nightly
@pytest.mark.parametrize("asked", ["frame=999999", "frame=999999&start_ns=0&end_ns=1"])
def test_a_missing_frame_is_reported(show: Serve, browser: Browser, asked: str) -> None:
    address, (id,) = show(SLOW_READER)
    # On a separate page: the browser reports failed requests on the console.
    page = browser.new_page(base_url=address)
    page.goto(f"/captures/{id}/connections/0?{asked}")
    expect(page.locator("#said")).to_have_text("Frame 999,999 is not a segment of this connection.")
    drawn(page)
    expect(page.locator("#figure")).to_have_attribute("data-marked", "")
    page.close()
