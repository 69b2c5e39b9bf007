"""The time budget adds up on every capture; kernel counters correct it.

Exact budgets of short connections are in tests/scenarios/budget-*.ladder.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import ladder
from cases import all_cases
from stories.story import Story

import tcpwin
from tcpwin.hosts import SocketSample
from tcpwin.limits.budget import KernelLimits, draw_up
from tcpwin.limits.tables import GROUPS, ITEMS

ROOT = Path(__file__).parents[2]
CAPTURES = sorted(
    path
    for folder in ("lab", "wild", "broken", "bundles")
    for path in (ROOT / "captures" / folder).iterdir()
    if path.suffix not in (".toml", ".md")
)
LADDERS = sorted((ROOT / "tests" / "scenarios").glob("*.ladder"))
FULL_PATH = ROOT / "tests" / "worlds" / "captures" / "seed-1-003-sender.pcap.gz"
MS = 1_000_000
SEGMENT = 1460


def assert_adds_up(analysis: tcpwin.Analysis) -> int:
    """Check that every instant of every direction belongs to one item; return the number of connections."""
    for connection in analysis.connections:
        for direction in (connection.a_to_b, connection.b_to_a):
            items = [getattr(direction, f"budget_{item}_ns") for item in ITEMS]
            assert min(items) >= 0
            assert sum(items) == connection.duration_ns
    return len(analysis.connections)


@all_cases("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_adds_up_to_the_duration(path: Path) -> None:
    try:
        analysis = tcpwin.analyze(path)
    except tcpwin.TcpwinError:
        assert path.parent.name == "broken"
        return
    assert_adds_up(analysis)


def test_adds_up_in_every_scenario(tmp_path: Path) -> None:
    """Includes one-way captures, clocks that step back, resets, and connections without data."""
    counted = 0
    for path in LADDERS:
        told = ladder.parse(path.read_text(encoding="utf8"), path.stem)
        told.write_pcap(tmp_path / "one.pcap")
        counted += assert_adds_up(tcpwin.analyze(tmp_path / "one.pcap"))
    assert counted >= len(LADDERS)


def rounds(count: int, *, segments: int) -> Story:
    """Round trips of 100 ms: two bursts 50 ms apart, each sent with the ACK of the previous one."""
    story = Story().handshake(0.1, options=("<mss 1460>", "<mss 1460>"), scaled=(64_240, 65_160))
    sizes = (4, segments - 4)
    for size in sizes:
        story.burst("a", size, spacing=0).wait(0.05)
    acked = 1
    for _ in range(count - 1):
        for size in sizes:
            acked += size * SEGMENT
            story.ack("b", acked)
            story.burst("a", size, spacing=0).wait(0.05)
    story.ack("b", acked + sizes[0] * SEGMENT)
    return story


def items_of(story: Story, folder: Path) -> dict[str, int]:
    """Return the non-zero items of a's data in milliseconds."""
    items = draw_up(story.analyze(folder).connections[0].a_to_b).items_ns
    return {item: ns // MS for item, ns in items.items() if ns}


def test_a_flight_that_stays_the_same_for_long_is_perhaps_the_send_buffers(tmp_path: Path) -> None:
    """The first round is slow start; sixteen equal flights may be chance, the next four count."""
    assert items_of(rounds(20, segments=8), tmp_path) == {
        "handshake": 100,
        "slow_start": 100,
        "congestion": 1500,
        "send_buffer": 400,
    }


def test_seven_segments_are_the_same_by_chance(tmp_path: Path) -> None:
    assert items_of(rounds(20, segments=7), tmp_path) == {"handshake": 100, "slow_start": 100, "congestion": 1900}


def full_windows() -> Story:
    """Twice three segments into a window of three: limited by the window for 200 ms of 300."""
    windows = (64_240, 3 * SEGMENT)
    story = Story(window=dict(zip("ab", windows, strict=True)))
    story.handshake(0.1, options=("<mss 1460>", "<mss 1460>"), scaled=windows)
    for _ in range(2):
        story.burst("a", 3, spacing=0).wait(0.1)
        story.ack("b")
    return story


def sample(busy_ms: int, window_ms: int, buffer_ms: int, *, acked: int = 6 * SEGMENT, time_ns: int = 0) -> SocketSample:
    """A sample of the sender's socket."""
    return SocketSample(
        time_ns=time_ns,
        congestion_control="cubic",
        busy_ns=busy_ms * MS,
        rwnd_limited_ns=window_ms * MS,
        sndbuf_limited_ns=buffer_ms * MS,
        bytes_acked=acked,
    )


def test_without_samples_the_packets_decide(tmp_path: Path) -> None:
    budget = draw_up(full_windows().analyze(tmp_path).connections[0].a_to_b)
    assert budget.items_ns == {item: {"handshake": 100, "window_full": 200}.get(item, 0) * MS for item in ITEMS}
    assert budget.packets_ns == budget.items_ns
    assert (budget.kernel, budget.disagreement, budget.largest) == (None, None, "receiver")
    assert budget.total_ns == 300 * MS
    assert budget.share("handshake", "window_full") == 1


def test_the_kernel_waited_less_for_the_window(tmp_path: Path) -> None:
    direction = full_windows().analyze(tmp_path).connections[0].a_to_b
    budget = draw_up(direction, [sample(100, 40, 0, acked=3 * SEGMENT), sample(200, 50, 0)])
    expected = {"handshake": 100, "window_full": 50, "congestion": 150}
    assert budget.items_ns == {item: expected.get(item, 0) * MS for item in ITEMS}
    assert budget.packets_ns["window_full"] == 200 * MS
    assert budget.kernel == KernelLimits(200 * MS, 50 * MS, 0)
    assert budget.disagreement == 0.5
    assert budget.largest == "congestion window"


def test_a_kernel_that_paces_counts_too_little_for_the_window(tmp_path: Path) -> None:
    """`tcp_write_xmit` looks at the pacing timer before the window (lab world 2-030)."""
    direction = full_windows().analyze(tmp_path).connections[0].a_to_b
    paced = [replace(each, congestion_control="bbr") for each in (sample(100, 40, 0), sample(200, 50, 0))]
    budget = draw_up(direction, paced)
    assert (budget.items_ns, budget.kernel) == (budget.packets_ns, None)
    more = [replace(sample(200, 210, 0), congestion_control="bbr")]
    assert draw_up(direction, more).kernel == KernelLimits(200 * MS, 210 * MS, 0)


def test_the_kernel_waited_more_than_the_packets_show(tmp_path: Path) -> None:
    """The difference comes from items of a busy sender, never from the application or recovery."""
    direction = rounds(10, segments=7).analyze(tmp_path).connections[0].a_to_b
    assert direction.budget_congestion_ns == 900 * MS
    budget = draw_up(direction, [sample(1000, 300, 200, acked=direction.acked_bytes)])
    assert budget.items_ns["window_full"] == 300 * MS
    assert budget.items_ns["send_buffer"] == 200 * MS
    assert budget.items_ns["congestion"] == 400 * MS
    assert budget.items_ns["application"] == direction.budget_application_ns
    assert budget.total_ns == sum(budget.packets_ns.values()) == 1100 * MS


def test_the_kernels_count_of_the_send_buffer_only_adds(tmp_path: Path) -> None:
    """The kernel counts only while the writer sleeps and everything is in flight (tcp_chrono_start)."""
    direction = rounds(20, segments=8).analyze(tmp_path).connections[0].a_to_b
    assert direction.budget_send_buffer_ns > 0
    budget = draw_up(direction, [sample(2000, 0, 100, acked=direction.acked_bytes)])
    assert budget.items_ns["send_buffer"] == budget.packets_ns["send_buffer"]
    assert budget.total_ns == sum(budget.packets_ns.values())


def test_time_of_the_path_is_not_charged_to_buffer_or_window() -> None:
    """Above a standing queue, window and buffer are full too: larger ones would only lengthen the queue."""
    direction = tcpwin.analyze(FULL_PATH).connections[0].b_to_a
    path_ns = direction.budget_path_ns
    assert path_ns > 0
    samples = [sample(10**6, 4 * 10**5, 6 * 10**5, acked=direction.acked_bytes)]
    assert draw_up(direction, samples).items_ns["path"] == path_ns


def test_samples_that_end_before_the_data_say_nothing(tmp_path: Path) -> None:
    direction = full_windows().analyze(tmp_path).connections[0].a_to_b
    assert draw_up(direction, [sample(200, 50, 0, acked=3 * SEGMENT)]).kernel is None
    assert draw_up(direction, [SocketSample()]).kernel is None


def late() -> Story:
    """A capture that began mid-connection."""
    story = Story(window={"a": 500, "b": 500}, next={"a": 1, "b": 1}, acked={"a": 1, "b": 1})
    for _ in range(2):
        story.burst("a", 3, spacing=0).wait(0.1)
        story.ack("b")
    return story


def test_counts_from_before_the_capture_are_subtracted(tmp_path: Path) -> None:
    direction = late().analyze(tmp_path).connections[0].a_to_b
    before = sample(5000, 4000, 0, time_ns=ladder.START_NS - MS)
    budget = draw_up(direction, [before, sample(5200, 4000, 0, time_ns=ladder.START_NS + 200 * MS)])
    assert budget.kernel == KernelLimits(200 * MS, 0, 0)
    assert sum(budget.items_ns[item] for item in ("zero_window", "small_window", "window_full")) == 0
    # A single sample does not show which part of its counts is within the capture.
    assert draw_up(direction, [before]).kernel is None


def test_each_direction_has_its_samples(tmp_path: Path) -> None:
    connection = full_windows().analyze(tmp_path).connections[0]
    assert set(connection.budget) == {"a_to_b", "b_to_a"}
    # b sent nothing: except for the handshake, it had nothing to send.
    back = connection.budget["b_to_a"].items_ns
    assert {item: ns for item, ns in back.items() if ns} == {"handshake": 100 * MS, "application": 200 * MS}


PAGE = (ROOT / "tcpwin" / "docs" / "time-budget.md").read_text(encoding="utf8")


def test_the_page_has_a_row_for_each_item() -> None:
    rows = re.findall(r"^\| ([a-z ]+) \| `budget_(\w+)_ns` \|", PAGE, re.MULTILINE)
    assert rows == [(group, item) for group, items in GROUPS.items() for item in items]


def test_the_shares_of_the_page_are_those_of_its_captures() -> None:
    rows = re.findall(r"^\| `(captures/[^`]+)` \| (.+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for name, told in rows:
        budget = tcpwin.analyze(ROOT / name).connections[0].budget["b_to_a"]
        largest = sorted(budget.groups_ns.items(), key=lambda group: -group[1])[:2]
        assert told == ", ".join(f"{group} {100 * ns / budget.total_ns:.0f} %" for group, ns in largest)
