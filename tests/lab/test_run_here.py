"""The runner on this host (`--engine netns`): one small scenario, and its clean-up. Needs root and tcpdump."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from itertools import product
from pathlib import Path

import pytest
from cli.command import TCPWIN, refused, tcpwin
from live import HANG_S, until
from reference import AS_ROOT, KERNEL_LACKS, NO_RIGHT
from spread import some_by_day

import tcpwin as library
from tcpwin.lab.network import SPACES, only_run
from tcpwin.lab.uninterrupted import signals_held

SMALL = """title = "A small transfer"
[path]
rate_mbps = 50
[workload]
name = "bulk"
serve.bytes = 1_000_000
[sysctl]
"net.ipv4.tcp_sack" = 0
[expect]
all = ["receiver.bytes == 1000000", "sender.bytes == 1000000"]
stock = ["receiver.nothing > 0"]
"""


LONG = """title = "A transfer that nobody waits for"
[path]
rate_mbps = 1
[workload]
name = "bulk"
serve.bytes = 1_000_000_000
serve.seconds = 1000.0
[sysctl]
"net.ipv4.tcp_mem" = "{0} {1} {2}"
"net.core.rmem_max" = "{3}"
"""
WHOLE_KERNEL = tuple(Path("/proc/sys/net", name) for name in ("ipv4/tcp_mem", "core/rmem_max"))


def can_make_namespaces() -> bool:
    """Return whether namespaces can be created; root in a container often cannot."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "ss", "tc", "tcpdump"))):
        return False
    # Every worker checks.
    name = f"tcpwin-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made


needs_namespaces = pytest.mark.skipif(not can_make_namespaces(), reason=f"{NO_RIGHT} make network namespaces")


def namespaces() -> set[str]:
    """Return the lab's existing namespaces."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if line} & set(SPACES.values())


@needs_namespaces
def test_a_run_on_this_host_is_a_bundle_and_leaves_nothing(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    done = tcpwin("lab", "run", scenario, "--engine", "netns", "--yes", "-o", tmp_path)
    said, errors = done.stdout.decode(), done.stderr.decode()
    if "qdisc kind is unknown" in errors:
        pytest.skip(f"{KERNEL_LACKS} tbf")
    assert namespaces() == set()
    # The changed settings are printed first; a failed expectation gives exit status 1.
    assert "  sender: net.ipv4.tcp_sack = 0\n" in errors
    assert "small-stock: expected receiver.nothing > 0, found nothing" in errors
    assert f"{tmp_path / 'small-stock.zip'}: 2 of 3 as expected" in said
    assert done.returncode == 1
    bundle = tmp_path / "small-stock.zip"
    with zipfile.ZipFile(bundle) as members:
        assert members.read("small-stock/scenario.toml").decode() == SMALL
        truth = json.loads(members.read("small-stock/meta.json"))
    assert truth["hosts"]["sender"]["capture"]["dropped"] == 0
    for end in ("sender", "receiver"):
        analysis = library.analyze(bundle, capture=f"{end}.pcap.gz")
        connection = analysis.connections[0]
        assert connection.b_to_a.unique_bytes == truth["hosts"]["receiver"]["log"]["bytes"] == 1_000_000
        assert str(connection.b.address) == truth["hosts"]["sender"]["address"]
        assert [host.label for host in analysis.hosts] == ["receiver", "sender"]
        assert analysis.hosts[0].settings.values["net.ipv4.tcp_sack"] == "0"
    again = tcpwin("lab", "run", scenario, "--engine", "netns", "--yes", "-o", tmp_path)
    assert b"(was there)" in again.stdout


def whole_kernel() -> list[int]:
    """Return the settings that are not per namespace."""
    return [int(word) for path in WHOLE_KERNEL for word in path.read_text().split()]


@needs_namespaces
@pytest.mark.parametrize(
    ("number", "at"),
    some_by_day(product([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ["first tcpdump", "transfer"]), of=6, first=1),
)
def test_a_run_that_is_ended_leaves_nothing(number: signal.Signals, at: str, tmp_path: Path) -> None:
    """Also if the signal comes twice, the second during the clean-up."""
    before = whole_kernel()
    changed = [value + 1 for value in before]
    scenario = tmp_path / "long.toml"
    scenario.write_text(LONG.format(*changed))
    # Under nohup, as in some CI, SIGHUP is ignored, and the run would inherit that.
    run = ("env", "--default-signal", TCPWIN, "lab", "run", scenario, "--engine", "netns", "--yes", "-o", tmp_path)
    command = [str(each) for each in run]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    awaited = "*/results/receiver.pcap" if at == "first tcpdump" else "*/results/log_receiver.jsonl"
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    try:
        until(lambda: bool(list(tmp_path.glob(awaited))) or process.poll() is not None)
        during = whole_kernel()
        process.send_signal(number)
        if at == "transfer":
            process.send_signal(number)
        errors = process.communicate(timeout=HANG_S)[1].decode()
    finally:
        process.kill()
        process.communicate()
    if "qdisc kind is unknown" in errors:
        pytest.skip(f"{KERNEL_LACKS} tbf")
    assert during == changed
    assert process.returncode == 128 + (signal.SIGINT if number == signal.SIGINT else signal.SIGTERM), errors
    assert namespaces() == set()
    assert whole_kernel() == before
    assert [path.name for path in tmp_path.iterdir()] == ["long.toml"]
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in running
    assert "tcpdump -i c0" not in running


@needs_namespaces
def test_what_a_killed_run_left_goes_with_the_next(tmp_path: Path) -> None:
    subprocess.run(["ip", "netns", "add", SPACES["sender"]], check=True)
    left = subprocess.Popen(["ip", "netns", "exec", SPACES["sender"], "sleep", "1000"])
    try:
        scenario = tmp_path / "own.toml"
        scenario.write_text(SMALL + "[host]\nframe_memory_bytes = 3328\n")
        tcpwin("lab", "run", scenario, "--engine", "netns", "--yes", "-o", tmp_path)
        assert left.wait(timeout=HANG_S) == -signal.SIGKILL
    finally:
        left.kill()
        left.wait()
    assert namespaces() == set()


def test_a_signal_waits_for_what_must_come_to_its_end() -> None:
    done = []
    # Tests started in the background of a shell ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the block is what is tested
            with signals_held() as outer:
                with signals_held():
                    signal.raise_signal(signal.SIGINT)
                    done.append("inner")
                done.append("outer")
                with outer.may_leave():
                    done.append("left")
            done.append("after")
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["inner", "outer"]


SENDS = """
import os, random, signal, sys, time
draws = random.Random(1)
for line in sys.stdin:
    time.sleep(draws.uniform(0, 0.0005))
    for _ in range(20):
        os.kill(os.getppid(), signal.SIGTERM)
    print("sent", flush=True)
"""


def test_signals_at_any_moment_never_skip_what_cleans_up() -> None:
    """Many signals at arbitrary moments: the second may interrupt the first step of the first one's handler."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    sender = subprocess.Popen([sys.executable, "-c", SENDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert sender.stdin is not None
    assert sender.stdout is not None
    skipped, ended = [], 0
    try:
        for number in range(400):
            steps: list[str] = []
            try:
                with signals_held() as signals:
                    sender.stdin.write("send\n")
                    sender.stdin.flush()
                    try:
                        for _ in range(50):
                            with signals.may_leave():
                                time.sleep(1e-5)
                    finally:
                        steps.append("cleans up")
                        sender.stdout.readline()
                        steps.append("is clean")
            except KeyboardInterrupt:
                ended += 1
            if steps != ["cleans up", "is clean"]:
                skipped.append((number, steps))
                break
    finally:
        sender.kill()
        sender.communicate()
        signal.signal(signal.SIGTERM, before)
    assert skipped == []
    assert ended == 400


@needs_namespaces
def test_a_feature_of_the_labs_kernel_alone_is_reported_and_cleaned_up(tmp_path: Path) -> None:
    scenario = tmp_path / "own.toml"
    scenario.write_text(SMALL + "[host]\nframe_memory_bytes = 3328\n")
    done = tcpwin("lab", "run", scenario, "--engine", "netns", "--yes", "-o", tmp_path)
    assert done.returncode == 3
    assert b"--engine uml" in done.stderr
    assert namespaces() == set()
    assert not (tmp_path / "own-stock.zip").exists()


@needs_namespaces
def test_a_second_run_at_once_is_refused_and_touches_nothing(tmp_path: Path) -> None:
    """Both would use the same namespaces."""
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    with only_run():
        before = namespaces()
        done = tcpwin("lab", "run", scenario, "--engine", "netns", "--yes", "-o", tmp_path)
        assert namespaces() == before
    assert done.returncode == 3
    assert b"tcpwin: another run with --engine netns is under way" in done.stderr
    with only_run():
        pass


def test_nothing_is_done_without_a_yes(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    done = tcpwin("lab", "run", scenario, "--engine", "netns", "-o", tmp_path, input=b"n\n")
    assert done.returncode == 130
    assert not (tmp_path / "small-stock.zip").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason=f"{AS_ROOT}, and this is about other users")
def test_without_root_the_error_says_so(tmp_path: Path) -> None:
    assert "which requires root" in refused(
        "lab", "run", "zero-window-5s", "--engine", "netns", "--yes", "-o", tmp_path
    )
