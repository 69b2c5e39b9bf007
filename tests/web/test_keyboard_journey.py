"""Tasks with captures by keyboard: Tab, Enter, letters, an arrow, and the browser's Back.

Each control is visible and marked before it is pressed. After a name, note, link or token changes, the focus stays in
place.
"""

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from reference import ROOT
from web.browsing import TOKEN, OpenPage, Serve
from web.test_smooth import settle

NARROW = ROOT / "captures" / "lab" / "receive-buffer-64k.pcap.gz"
SLOW_READER = ROOT / "captures" / "lab" / "slow-reader.pcap.gz"
MOST_TABS = 150
SEEN = """() => {
  const here = document.activeElement, style = getComputedStyle(here), box = here.getBoundingClientRect();
  return here !== document.body && box.width > 0 && box.bottom > 0 && box.top < innerHeight
    && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
}"""


def reach(page: Page, wanted: Locator, key: str = "Tab") -> None:
    """Press Tab until the element has the focus, and check that it is marked."""
    expect(wanted).to_be_visible()
    for _ in range(MOST_TABS):
        if wanted.evaluate("each => each === document.activeElement"):
            break
        page.keyboard.press(key)
    expect(wanted).to_be_focused()
    page.wait_for_function(SEEN)


def press(page: Page, wanted: Locator, key: str = "Enter") -> None:
    reach(page, wanted)
    page.keyboard.press(key)


def fill(page: Page, wanted: Locator, text: str) -> None:
    reach(page, wanted)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(text)
    expect(wanted).to_have_value(text)


def choose(page: Page, wanted: Locator, text: str) -> None:
    """Select an entry of a list by its first letters."""
    reach(page, wanted)
    page.keyboard.type(text)
    chosen = wanted.evaluate("each => each.selectedOptions[0].text")
    assert chosen.startswith(text), chosen


def holds_focus(page: Page, wanted: Locator) -> None:
    expect(wanted).to_be_focused()
    page.wait_for_function(SEEN)


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def link(page: Page, name: str) -> Locator:
    return page.get_by_role("link", name=name, exact=True).first


def test_captures_are_uploaded_noted_shared_compared_and_searched(serve: Serve, open_page: OpenPage) -> None:
    address, (narrow,) = serve(NARROW.read_bytes())
    page = open_page(address)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.on("dialog", lambda dialog: dialog.accept())

    # Upload: a key opens the file chooser; the upload starts with the choice, and the capture's page opens.
    page.goto("/")
    press(page, link(page, "Upload a capture"))
    press(page, page.locator("summary"))
    fill(page, page.get_by_label("Name", exact=True), "slow reader")
    with page.expect_file_chooser() as opened:
        press(page, page.locator("#files"))
    opened.value.set_files(SLOW_READER)
    expect(page.get_by_role("heading", level=1)).to_contain_text("slow reader")
    expect(page.get_by_role("heading", name="Connections", exact=True)).to_be_visible()
    slow = page.url.rpartition("/")[2]

    # Rename and tag.
    fill(page, page.locator("#new-name"), "after")
    fill(page, page.locator("#new-tags"), "tried")
    press(page, button(page, "Save"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("after")
    holds_focus(page, page.get_by_role("heading", name="Name and tags"))
    expect(link(page, "tried")).to_be_visible()

    # Create, copy and revoke a link.
    press(page, button(page, "Create a link for 7 days"))
    press(page, button(page, "Copy link"))
    holds_focus(page, button(page, "Copied"))
    assert re.search(r"/shared/\S+$", page.evaluate("() => navigator.clipboard.readText()"))
    reach(page, button(page, "Revoke"), "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#links li")).to_have_count(0)
    holds_focus(page, button(page, "Create a link for 7 days"))

    # Write a note on the connection, and delete it.
    page.goto(f"/captures/{slow}/connections/0")
    settle(page)
    # Its tables contain many frames; the page's links skip them.
    press(page, link(page, "Notes"))
    fill(page, page.get_by_label("Note on this connection"), "The reader sleeps here.")
    fill(page, page.get_by_label("Your name"), "Ada")
    press(page, button(page, "Add note"))
    expect(page.locator(".notes li")).to_contain_text("The reader sleeps here.")
    holds_focus(page, page.get_by_role("heading", name="Notes"))
    # The page was reloaded, and draws its figure above.
    settle(page)
    press(page, page.get_by_role("button", name="Delete the note"))
    expect(page.locator(".notes li")).to_have_count(0)
    holds_focus(page, page.get_by_role("heading", name="Notes"))

    # Predict a change.
    page.goto(f"/captures/{narrow}/connections/0")
    settle(page)
    press(page, link(page, "What if …"))
    fill(page, page.get_by_label("Receiver's tcp_rmem, maximum"), "64M")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="receiver.tcp_rmem=64M")).to_be_visible()

    # Compare one capture with the other.
    page.goto(f"/captures/{narrow}")
    press(page, link(page, "Compare with another"))
    choose(page, page.locator("#new"), "after")
    press(page, button(page, "Compare"))
    figure = page.locator("#figure")
    expect(figure).to_have_attribute("data-drawn", "true")
    kind = page.locator("#kind")
    reach(page, kind)
    before = kind.input_value()
    page.keyboard.press("ArrowDown")
    expect(kind).not_to_have_value(before)
    holds_focus(page, kind)

    # Search all captures; Back returns to the query.
    press(page, link(page, "Search"))
    fill(page, page.get_by_label("Server's port"), "1")
    expect(page.get_by_text("No connections match.")).to_be_visible()
    holds_focus(page, page.get_by_label("Server's port"))
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.press("Delete")
    rows = page.get_by_role("region", name="Search results").locator("tbody tr")
    expect(rows).to_have_count(2)
    choose(page, page.get_by_label("Tag"), "tried")
    expect(rows).to_have_count(1)
    asked = page.url
    press(page, rows.get_by_role("link").first)
    settle(page)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Connection 0")
    # Alt and an arrow are browser keys, which a headless browser lacks.
    page.go_back()
    expect(page).to_have_url(asked)
    expect(rows).to_have_count(1)


@pytest.mark.nightly
def test_tokens_are_made_copied_and_revoked(serve: Serve, open_page: OpenPage) -> None:
    address, _ = serve(token=TOKEN)
    page = open_page(address)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/login")
    fill(page, page.get_by_label("Token"), TOKEN)
    page.keyboard.press("Enter")
    press(page, link(page, "Tokens"))
    fill(page, page.get_by_label("Name"), "Ada")
    choose(page, page.get_by_label("Scope"), "upload")
    press(page, button(page, "Create token"))
    expect(page.locator("#made code")).to_be_visible()
    holds_focus(page, button(page, "Create token"))
    press(page, button(page, "Copy token"))
    holds_focus(page, button(page, "Copied"))
    assert page.evaluate("() => navigator.clipboard.readText()") == page.locator("#made code").text_content()
    press(page, link(page, "Copied: show the list"))
    press(page, button(page, "Revoke Ada"))
    expect(page.get_by_role("row", name="Ada")).to_contain_text("revoked")
    holds_focus(page, page.get_by_role("rowheader", name="Ada"))
