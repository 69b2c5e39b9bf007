"""`tcpwin plot`: a figure as image, page or data, by file extension."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli.command import CAPTURES, MANY_SHORT, SLOW_READER, TEXT, refused, tcpwin
from spread import some_by_day

BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"


def test_data(tmp_path: Path) -> None:
    out = tmp_path / "window.json"
    done = tcpwin("plot", SLOW_READER, "-o", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    document = json.loads(out.read_text(encoding="utf8"))
    assert {"receive window", "in flight", "window closed"} <= {each["name"] for each in document["data"]}
    assert document["layout"]["meta"]["figures"] == ["window"]


def test_a_page_needs_no_network(tmp_path: Path) -> None:
    out = tmp_path / "timeline.html"
    assert tcpwin("plot", BUNDLE, "--figure", "timeline", "--theme", "dark", "-o", out).returncode == 0
    page = out.read_text(encoding="utf8")
    assert page.startswith("<!doctype html>\n<html lang")
    assert "<title>10.9.2.2:36984 and 10.9.1.1:5201: timeline</title>" in page
    assert 'src="http' not in page
    assert "background: #12161b" in page


def test_a_page_is_small_and_drawn(tmp_path: Path, tool: Callable[[str], str]) -> None:
    chromium, out = tool("chromium"), tmp_path / "window.html"
    assert tcpwin("plot", SLOW_READER, "-o", out).returncode == 0
    assert out.stat().st_size < 2_000_000
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    shown = subprocess.run([chromium, *options, "--dump-dom", out.as_uri()], capture_output=True, check=True).stdout
    assert b"receive window" in shown.partition(b'class="main-svg"')[2]


@pytest.mark.parametrize(("ending", "begins"), some_by_day([("png", b"\x89PNG"), ("pdf", b"%PDF-")], of=2))
def test_images(tmp_path: Path, tool: Callable[[str], str], ending: str, begins: bytes) -> None:
    tool("chromium")
    out = tmp_path / f"window.{ending}"
    done = tcpwin("plot", SLOW_READER, "-o", out)
    assert (done.returncode, done.stderr) == (0, b"")
    assert out.read_bytes().startswith(begins)


@pytest.mark.nightly
def test_an_image_has_the_size_asked_for(tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("chromium")
    out = tmp_path / "rtt.svg"
    done = tcpwin("plot", SLOW_READER, "--figure", "rtt", "--width", "640", "--height", "320", "-o", out)
    assert done.returncode == 0
    picture = ElementTree.parse(out).getroot()
    assert (picture.get("width"), picture.get("height")) == ("640", "320")


def test_with_snapshots(tmp_path: Path) -> None:
    out = tmp_path / "memory.json"
    folder = tmp_path / "case"
    assert tcpwin("plot", BUNDLE, "--figure", "socket-memory", "-o", out).returncode == 0
    assert {each["name"] for each in json.loads(out.read_text())["data"]} >= {"memory (r)", "buffer (rb)"}
    assert not folder.exists()


def test_a_span_and_a_direction(tmp_path: Path) -> None:
    out = tmp_path / "part.json"
    options = ["--from", "1.5", "--to", "1600ms", "--direction", "b_to_a", "--figure", "time-sequence"]
    assert tcpwin("plot", SLOW_READER, *options, "-o", out).returncode == 0
    meta = json.loads(out.read_text())["layout"]["meta"]
    assert int(meta["start_ns"]) - int(meta["origin_ns"]) == 1_500_000_000
    assert int(meta["end_ns"]) - int(meta["origin_ns"]) == 1_600_000_000
    assert meta["direction"] == "b_to_a"


def test_a_span_by_time_of_day(tmp_path: Path) -> None:
    """The capture's first packet is at 02:01:25.796158."""
    out = tmp_path / "part.json"
    options = ["--from", "02:01:27.296158", "--to", "1600ms", "--figure", "time-sequence"]
    assert tcpwin("plot", SLOW_READER, *options, "-o", out).returncode == 0
    meta = json.loads(out.read_text())["layout"]["meta"]
    assert int(meta["start_ns"]) - int(meta["origin_ns"]) == 1_500_000_000
    assert int(meta["end_ns"]) - int(meta["origin_ns"]) == 1_600_000_000


def test_of_several_connections_the_worst_is_drawn_and_named(tmp_path: Path) -> None:
    out = tmp_path / "window.json"
    done = tcpwin("plot", MANY_SHORT, "-o", out)
    drawn = json.loads(out.read_text())["layout"]["meta"]["connection"]
    assert (
        done.stderr.decode() == f"tcpwin: drawing connection {drawn} of 65, the worst; --connection chooses another\n"
    )
    assert tcpwin("plot", MANY_SHORT, "--connection", "7", "-o", out).stderr == b""
    assert json.loads(out.read_text())["layout"]["meta"]["connection"] == 7


def test_all_connections(tmp_path: Path) -> None:
    out = tmp_path / "overview.json"
    assert tcpwin("plot", MANY_SHORT, "--figure", "overview", "-o", out).returncode == 0
    assert "65 connections" in json.loads(out.read_text())["layout"]["title"]["text"]


def test_the_list() -> None:
    done = tcpwin("plot", "--list")
    names = [line.split()[0] for line in done.stdout.decode().splitlines()]
    assert done.returncode == 0
    assert {"window", "time-sequence", "overview", "timeline"} <= set(names)


def test_an_empty_figure_is_reported(tmp_path: Path) -> None:
    out = tmp_path / "counters.json"
    done = tcpwin("plot", SLOW_READER, "--figure", "counters", "-o", out)
    assert done.returncode == 0
    assert done.stderr.decode().startswith("tcpwin: warning: nothing to show: no snapshot has counters")
    assert out.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "window.gif"], "window.gif has no known extension: use one of png, svg, pdf"),
        (["--figure", "windows", "-o", "w.json"], "unknown figure 'windows': choose one of overview, window"),
        (["--from", "5", "--to", "4s", "-o", "w.json"], "--to is not after --from"),
        (["--from", "soon", "-o", "w.json"], "invalid time 'soon'; write 12.5"),
        (["--figure", "socket-distribution", "--field", "nope", "-o", "w.json"], "a socket has no numeric field nope"),
        (["--figure", "messages", "--from", "1", "-o", "w.json"], "messages is of all of a connection's life"),
        (["--figure", "messages", "--to", "1", "-o", "w.json"], "--to is not for it"),
        (["--figure", "counters", "--direction", "a_to_b", "-o", "w.json"], "counters chooses its directions itself"),
        (["--figure", "overview", "--connection", "0", "-o", "w.json"], "overview is of all connections"),
        (["--figure", "overview", "--from", "1", "-o", "w.json"], "overview is of all connections"),
        (["--field", "rcvbuf_bytes", "-o", "w.json"], "window has no fields to choose from: --field is not for it"),
        (["--figure", "timeline", "--field", "nope", "-o", "w.json"], "timeline has no fields to choose from"),
        ([], "Missing option '-o'"),
    ],
)
def test_wrong_usage(options: list[str], said: str, tmp_path: Path) -> None:
    text = refused("plot", SLOW_READER, *options, status=2, cwd=tmp_path)
    assert said in " ".join(text.split())
    assert not list(tmp_path.iterdir())


def test_unreadable_input_and_unwritable_output(tmp_path: Path) -> None:
    assert "no connection 1: the capture has 1" in refused(
        "plot", SLOW_READER, "--connection", 1, "-o", tmp_path / "w.json"
    )
    assert refused("plot", TEXT, "-o", tmp_path / "w.json").startswith(f"tcpwin: {TEXT}")
    assert "No such file or directory" in refused("plot", SLOW_READER, "-o", tmp_path / "absent" / "w.json")
    assert not list(tmp_path.iterdir())


def test_the_capture_is_not_written_over(tmp_path: Path) -> None:
    capture = tmp_path / "capture.json"
    capture.write_bytes(SLOW_READER.read_bytes())
    assert "is also an input file" in refused("plot", capture, "-o", capture, status=2)
    assert capture.read_bytes() == SLOW_READER.read_bytes()


def test_an_image_without_a_browser_says_what_is_missing(tmp_path: Path) -> None:
    out = tmp_path / "window.png"
    text = refused("plot", SLOW_READER, "-o", out, env={**os.environ, "BROWSER_PATH": "/absent/chromium"})
    assert "an image needs Chromium or Google Chrome" in text
    assert not out.exists()


def test_a_browser_that_fails_leaves_no_file(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\nexit 1\n")
    browser.chmod(0o755)
    out = tmp_path / "window.png"
    text = refused("plot", SLOW_READER, "-o", out, env={**os.environ, "BROWSER_PATH": str(browser)})
    assert f"{browser} could not draw it" in text
    assert not out.exists()
