"""Take the dashboard's pictures for the documentation: `python tests/web/screenshots.py`.

Starts the real service on a loopback port with bundled captures, in a temporary folder, and writes `web/images`.
"""

import base64
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import httpx2
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "web" / "images"
CAPTURES = ("bundles/slow-reader.zip", "lab/no-window-scaling.pcap.gz", "lab/window-scaling.pcap.gz")
QUALITY = 72
WAIT_MS = 120_000
Theme = Literal["light", "dark"]
# Name, path, width and height, theme, and the element to scroll to the top.
PICTURES: tuple[tuple[str, str, tuple[int, int], Theme, str | None], ...] = (
    ("capture", "/captures/{0}", (1280, 860), "light", None),
    ("connection", "/captures/{0}/connections/0", (1280, 1120), "dark", None),
    ("compare", "/compare?old={1}&new={2}", (1280, 1120), "light", None),
    ("references", "/references?capture={2}&connection=0", (1280, 900), "light", "#matrix"),
)


def main() -> None:
    """Take all pictures."""
    IMAGES.mkdir(exist_ok=True)
    program = Path(sys.executable).parent / "tcpwin-web"
    with tempfile.TemporaryDirectory() as folder:
        captures = [ROOT / "captures" / name for name in CAPTURES]
        server = subprocess.Popen(
            [program, *captures, "--port", "0", "--data", folder], stderr=subprocess.PIPE, text=True
        )
        try:
            assert server.stderr is not None
            address = next(found[0] for line in server.stderr if (found := re.search(r"http://[\d.]+:\d+", line)))
            ids = settled(address)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                for name, path, size, theme, top in PICTURES:
                    take(browser, address + path.format(*ids), IMAGES / f"{name}.webp", size, theme, top)
                browser.close()
        finally:
            server.terminate()
            server.communicate()


def settled(address: str) -> list[str]:
    """Return the captures' ids in order once all are analysed."""
    while True:
        found = httpx2.get(f"{address}/api/v1/captures", timeout=None).json()["captures"]
        if len(found) == len(CAPTURES) and all(each["status"] == "done" for each in found):
            by_name = {each["name"]: each["id"] for each in found}
            return [by_name[Path(name).name] for name in CAPTURES]
        time.sleep(0.2)


def take(browser: Browser, url: str, path: Path, size: tuple[int, int], theme: Theme, top: str | None) -> None:
    """Take one picture as webp, in which the browser can save it."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=theme, device_scale_factor=1.5
    )
    page = context.new_page()
    page.goto(url, timeout=WAIT_MS)
    page.wait_for_load_state("networkidle", timeout=WAIT_MS)
    if page.locator("#figure").count():
        page.locator('#figure[data-drawn="true"]').wait_for(timeout=WAIT_MS)
    if top:
        page.locator(top).evaluate("(place) => place.scrollIntoView()")
    page.wait_for_timeout(500)
    answer = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    path.write_bytes(base64.b64decode(answer["data"]))
    print(path.relative_to(ROOT), f"{path.stat().st_size:,} bytes")
    context.close()


if __name__ == "__main__":
    main()
