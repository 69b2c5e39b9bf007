"""Captures in an S3 store and on a web server, both served by rclone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import command
from cli.command import TEXT
from fleet.sets import LOSS, MANY, READER, RUN, ask, run_fleet
from live import until

import tcpwin as library
from tcpwin.errors import SourceError

RCLONE = Path(sys.executable).with_name("rclone")
KEY, SECRET = "tcpwin-tests", "nobody-elses-secret"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bucket with captures of two sites, a bundle with snapshots, and a file that is not a capture."""
    bucket = tmp_path_factory.mktemp("store") / "bucket"
    for site, paths in {"paris": (READER, LOSS), "rome/2026": (MANY, TEXT), "run": RUN.iterdir()}.items():
        (bucket / site).mkdir(parents=True)
        for path in paths:
            shutil.copy(path, bucket / site)
    return bucket


@pytest.fixture(scope="module")
def serve(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Start one of rclone's servers for the tree; return its address."""
    began: list[subprocess.Popen[bytes]] = []
    log = tmp_path_factory.mktemp("logs") / "rclone"

    def begin(kind: str, *options: str) -> str:
        wanted = [
            RCLONE,
            "serve",
            kind,
            str(tree.parent),
            "--addr",
            "127.0.0.1:0",
            "--log-file",
            str(log / kind),
            "--dir-cache-time",
            "0s",
        ]
        log.mkdir(exist_ok=True)
        server = subprocess.Popen([*wanted, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        began.append(server)
        return f"http://127.0.0.1:{until(lambda: _port_of(server.pid))}"

    yield begin
    for server in began:
        server.kill()
        server.wait()


def _port_of(process: int) -> int | None:
    """Return the port on which a process listens (proc(5), net/tcp: state 0A is LISTEN)."""
    fds = Path(f"/proc/{process}/fd")
    try:
        sockets = {str(each.readlink()).removeprefix("socket:[").rstrip("]") for each in fds.iterdir()}
    except OSError:
        return None
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in sockets:
            return int(words[1].partition(":")[2], 16)
    return None


@pytest.fixture(scope="module")
def store(serve: Callable[..., str]) -> Iterator[None]:
    """Return the environment in which ``s3://bucket`` is the tree."""
    address = serve("s3", "--auth-key", f"{KEY},{SECRET}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", address)
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_REGION", "us-east-1")
        patch.setenv("AWS_ALLOW_HTTP", "true")
        yield


def rows(dataset: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of the captures without their paths."""
    left_out = {"captures": "capture, name, error, read_ns, warnings, snapshots"}
    return {
        table: ask(dataset, f"SELECT * EXCLUDE ({left_out.get(table, 'capture')}) FROM {{{table}}} ORDER BY ALL")
        for table in ("captures", "connections", "findings", "budgets")
    }


@pytest.mark.usefixtures("store")
def test_a_bucket_is_the_folder_that_it_holds(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setenv("TMPDIR", str(copies))
    summary = run_fleet("s3://bucket/", "-o", tmp_path / "there", status=3)
    assert (summary["captures"], summary["measured"]) == (6, 6)
    assert [each["name"] for each in summary["failed"]] == [f"s3://bucket/rome/2026/{TEXT.name}"]
    assert list(copies.iterdir()) == []
    run_fleet(tree, "-o", tmp_path / "here", status=3)
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
    assert ask(tmp_path / "there", "SELECT hosts FROM {captures} WHERE site = 'run'") == [(["rcv", "snd"],)] * 2
    assert run_fleet("s3://bucket", "-o", tmp_path / "there", status=3)["unchanged"] == 6


@pytest.mark.usefixtures("store")
def test_a_prefix_a_pattern_an_object_and_what_changed(tree: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    assert run_fleet("s3://bucket/paris", "-o", folder)["measured"] == 2
    assert run_fleet("s3://bucket/*/loss*.gz", f"s3://bucket/paris/{READER.name}", "-o", folder)["unchanged"] == 2
    assert run_fleet("s3://bucket/**/many*", "-o", folder)["measured"] == 1
    shutil.copy(LOSS, tree / "paris" / "new.pcap.gz")
    assert run_fleet("s3://bucket/paris/", "-o", folder)["measured"] == 1
    shutil.copy(READER, tree / "paris" / "new.pcap.gz")
    assert run_fleet("s3://bucket/paris/", "-o", folder)["measured"] == 1
    (tree / "paris" / "new.pcap.gz").unlink()
    counts = "SELECT count(*), count(DISTINCT name) FROM {captures}"
    assert ask(folder, counts) == [(4, 4)]


def test_a_file_of_a_web_server(serve: Callable[..., str], tmp_path: Path) -> None:
    address = f"{serve('http')}/bucket/paris/{READER.name}"
    assert run_fleet(address, "-o", tmp_path / "set")["measured"] == 1
    run_fleet(READER, "-o", tmp_path / "here", "--site", "paris")
    assert rows(tmp_path / "set") == rows(tmp_path / "here")
    assert "nothing found" in refuse(f"{address}.none", tmp_path)
    assert "? and # are not supported in an address" in refuse(f"{address}?x=1", tmp_path)


@pytest.mark.usefixtures("store")
def test_what_a_store_refuses_is_one_sentence(tmp_path: Path) -> None:
    assert "s3://none/" in refuse("s3://none/", tmp_path)
    assert "403" in refuse("s3://bucket/", tmp_path, AWS_SECRET_ACCESS_KEY="wrong")
    assert "no capture found" in refuse("s3://bucket/nowhere/", tmp_path)
    assert "names no bucket" in refuse("s3://", tmp_path)


def refuse(source: str, tmp_path: Path, **more: str) -> str:
    arguments = ("fleet", "run", source, "-o", tmp_path / "refused", "--json")
    done = command.tcpwin(*arguments, env={**os.environ, **more})
    text = done.stderr.decode()
    assert (done.returncode, text.count("\n")) == (3, 1), text
    assert not (tmp_path / "refused").exists()
    return text


@pytest.mark.usefixtures("store")
def test_an_object_is_analysed_by_its_address(tree: Path) -> None:
    found = library.analyze(f"s3://bucket/paris/{READER.name}")
    here = library.analyze(tree / "paris" / READER.name)
    assert found.to_json().replace(found.name, "") == here.to_json().replace(here.name, "")
    with pytest.raises(SourceError, match="nothing found"):
        library.analyze("s3://bucket/absent.pcap")
