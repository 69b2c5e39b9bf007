"""Random worlds from stated ranges: scenarios in which one limit is likely, and none is certain.

In: a seed and a number. Out: a scenario's table; seed and number determine the world. Each world has a story, the
likely limit, and each story occurs once per round of stories. The lab decides the actual limit, and no world is
excluded for it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tcpwin.lab.scenario import Scenario, read_scenario
from tcpwin.lab.toml_text import render_toml

T = TypeVar("T")
Table = dict[str, Any]
RTT_MS = (1.0, 300.0)
RATE_MBPS = (2.0, 1000.0)
QUEUE_TIMES = (0.2, 12.0)
"""Queue size as a multiple of rate times delay."""
SECONDS = (2.0, 15.0)
"""Duration of a transfer at the expected rate."""
BYTES = (300_000, 40_000_000)
MESSAGE_BYTES = (8_000, 1_000_000)
LOSS_PERCENT = (0.005, 3.0)
BURSTS_PERCENT = (0.005, 1.0)
LOSSY_SHARE = (0.05, 1.5)
"""Share of the rate that losses would leave to Reno."""
_FRAME_BYTES, _MSS_BYTES = 1538, 1448
_LEAST_ROUND_TRIPS = 12
"""Minimum round trips of a transfer at its rate, so that slow start does not dominate."""
_LEAST_QUEUE_BYTES, _MOST_QUEUE_BYTES = 6_000, 16_000_000
_SAMPLES = 15
_MATHIS = 1.22
_MTUS = (1280, 1400, 1420, 1440)
_CARD_OF_OFFLOAD_MBPS = 100_000.0
"""A card fast enough for its bucket to hold a frame of 64 KB, which leaves segmentation to the queue."""


@dataclass
class _Draw:
    """A world while it is drawn."""

    random: random.Random
    rtt_ms: float
    rate_mbps: float
    algorithm: str = "cubic"
    expected_mbps: float = 1.0
    """The transfer's expected rate."""
    path: Table = field(default_factory=dict)
    host: Table = field(default_factory=dict)
    workload: Table = field(default_factory=lambda: {"name": "transfer", "serve": {}, "drive": {}})
    sysctl: Table = field(default_factory=dict)
    sender: Table = field(default_factory=dict)
    receiver: Table = field(default_factory=dict)
    pauses_s: float = 0.0
    is_short: bool = False

    @property
    def bdp_bytes(self) -> float:
        """Return rate times delay."""
        return self.rate_mbps * 1e6 / 8 * self.rtt_ms / 1000

    def between(self, least: float, most: float) -> float:
        """Return a log-uniform random number with three digits."""
        return _round(math.exp(math.log(least) + self.random.random() * (math.log(most) - math.log(least))))

    def one_of(self, choices: Sequence[T], weights: Sequence[float] | None = None) -> T:
        """Return one of these at random."""
        return self.random.choices(list(choices), weights)[0]

    def happens(self, share: float) -> bool:
        """Return true with this probability."""
        return self.random.random() < share


def world(seed: int, number: int) -> Scenario:
    """Return world `number`, from 0, of a seed."""
    name = f"world-{seed}-{number:03d}"
    return read_scenario(name, render_toml(world_table(seed, number)))


def story(seed: int, number: int) -> str:
    """Return the likely limit of a world: each story once per round, in a random order."""
    order = list(_STORIES)
    random.Random(f"{seed}, round {number // len(order)}").shuffle(order)
    return order[number % len(order)]


def world_table(seed: int, number: int) -> Table:
    """Return a world's scenario as a table."""
    which = story(seed, number)
    draw = _begin(random.Random(f"{seed}, world {number}"), which)
    _STORIES[which](draw)
    _decorate(draw, which)
    total = _size(draw)
    estimate_s = 8 * total / (draw.expected_mbps * 1e6) + draw.pauses_s + 6 * draw.rtt_ms / 1000
    return {
        "title": f"Drawn: {which.replace('-', ' ')}",
        "sets": ["worlds"],
        "seed": 1 + number,
        "path": draw.path,
        "host": draw.host,
        "workload": draw.workload,
        "sysctl": {"net.ipv4.tcp_mem": "131072 196608 262144", **draw.sysctl},
        "sysctl_sender": draw.sender,
        "sysctl_receiver": draw.receiver,
        "measure": {"sample_ms": max(20, round(1000 * estimate_s / _SAMPLES)), "quick": True},
    }


def _begin(drawn: random.Random, which: str) -> _Draw:
    draw = _Draw(drawn, 1.0, 1.0)
    rtts = {"dctcp": (1.0, 20.0), "bloated-queue": (5.0, 60.0), "short": (20.0, 300.0), "messages": (30.0, 300.0)}
    rates = {"bloated-queue": (2.0, 40.0), "short": (20.0, 500.0), "messages": (10.0, 200.0)}
    while True:
        draw.rtt_ms = draw.between(*rtts.get(which, RTT_MS))
        draw.rate_mbps = draw.between(*rates.get(which, RATE_MBPS))
        if which in ("short", "messages") or draw.bdp_bytes <= BYTES[1] / _LEAST_ROUND_TRIPS:
            break
    draw.algorithm = draw.one_of(("cubic", "reno", "bbr"), (5, 2, 2))
    draw.expected_mbps = draw.rate_mbps
    return draw


def _decorate(draw: _Draw, which: str) -> None:
    """Add the properties that every world has, whatever its likely limit."""
    path, host = draw.path, draw.host
    path["rtt_ms"] = draw.rtt_ms
    has_queue = "queue_bytes" in path
    path.setdefault("rate_mbps", max(1000.0, 4 * draw.rate_mbps) if has_queue else draw.rate_mbps)
    if has_queue and "policer_mbps" not in path and draw.happens(0.2):
        host["offload"] = True
        path["rate_mbps"] = _CARD_OF_OFFLOAD_MBPS
        host["gro_flush_us"] = draw.one_of((0, 20, 50))
    if draw.happens(0.15):
        path["mtu_bytes"] = draw.one_of(_MTUS)
    if "loss" not in which and draw.happens(0.1):
        path["loss_percent"] = draw.between(0.002, 0.03)
    if draw.happens(0.2):
        host["frame_memory_bytes"] = 3328
    if draw.happens(0.1):
        draw.sysctl["net.ipv4.tcp_timestamps"] = 0
    draw.sysctl["net.ipv4.tcp_congestion_control"] = draw.algorithm
    on_the_way = round(4 * (draw.bdp_bytes + path.get("queue_bytes", 0)))
    is_ample = draw.happens(0.7)
    draw.receiver.setdefault(_RMEM, f"4096 131072 {max(6291456, 2 * on_the_way * is_ample)}")
    draw.sender.setdefault(_WMEM, f"4096 16384 {max(4194304, on_the_way * is_ample)}")


def _size(draw: _Draw) -> int:
    """Choose the transfer's size, and return it."""
    serve = draw.workload["serve"]
    if draw.workload["name"] == "messages":
        return int(serve["count"] * serve["message_bytes"])
    if not draw.is_short:
        seconds = draw.between(*SECONDS)
        least = max(BYTES[0], _LEAST_ROUND_TRIPS * min(draw.bdp_bytes, draw.expected_mbps * 125 * draw.rtt_ms))
        serve["bytes"] = round(min(max(draw.expected_mbps * 125_000 * seconds, least), BYTES[1]))
    total = int(serve["bytes"])
    # A transfer has a fixed number of pauses and stalls, whatever its size.
    for settings, key in ((serve, "pause_bytes"), (draw.workload["drive"], "stall_bytes")):
        if key in settings:
            settings[key] = max(1, round(total / settings[key]))
    drive = draw.workload["drive"]
    if "slow_bytes" in drive:
        loop = total / drive["slow_bytes"]
        slow = max(1, round(loop * drive["fast_bytes"] / 100))
        drive["fast_bytes"], drive["slow_bytes"] = max(1, round(loop) - slow), slow
    return total


def _queue(draw: _Draw, least: float = QUEUE_TIMES[0], most: float = QUEUE_TIMES[1], kind: str = "droptail") -> None:
    """Add a bottleneck with a queue."""
    size = draw.between(least, most) * draw.bdp_bytes
    draw.path["bottleneck_mbps"] = draw.rate_mbps
    draw.path["queue_bytes"] = round(min(max(size, _LEAST_QUEUE_BYTES), _MOST_QUEUE_BYTES))
    if kind != "droptail":
        draw.path["queue"] = kind
        # A managed queue has space for bursts.
        draw.path["queue_bytes"] = max(draw.path["queue_bytes"], 150_000, round(2 * draw.bdp_bytes))


def _maybe_queue(draw: _Draw, share: float = 0.6) -> None:
    if draw.happens(share):
        _queue(draw, kind=draw.one_of(("droptail", "codel", "fq_codel"), (4, 1, 1)))


def _drop_tail(draw: _Draw) -> None:
    _queue(draw)


def _managed_queue(draw: _Draw) -> None:
    _queue(draw, kind=draw.one_of(("codel", "fq_codel")))
    if draw.happens(0.5):
        draw.path["ecn"] = True
        draw.sysctl[_ECN] = 1


def _dctcp(draw: _Draw) -> None:
    _queue(draw, 1.0, 4.0, draw.one_of(("codel", "fq_codel")))
    frame_us = 8 * _FRAME_BYTES / draw.rate_mbps
    draw.path |= {"ecn": True, "mark_us": round(max(2 * frame_us, draw.between(0.15, 0.6) * 1000 * draw.rtt_ms))}
    draw.sysctl[_ECN] = 1
    draw.algorithm = "dctcp"


def _cross(draw: _Draw) -> None:
    _queue(draw, 0.5, 4.0, draw.one_of(("droptail", "codel", "fq_codel"), (3, 1, 1)))
    draw.path["cross_algorithm"] = draw.one_of(("cubic", "reno", "bbr"), (3, 1, 1))
    if draw.happens(0.6):
        draw.path["cross_start_s"] = -_round(1.0 + 20 * draw.rtt_ms / 1000)
    else:
        draw.path |= {"cross_start_s": draw.between(0.5, 3.0), "cross_s": draw.between(1.0, 8.0)}
    draw.expected_mbps = draw.rate_mbps / 2


def _bloated(draw: _Draw) -> None:
    _queue(draw, 4.0, QUEUE_TIMES[1])


def _card(draw: _Draw) -> None:
    """Make the sender's card the bottleneck, without a queue in the path."""


def _window(draw: _Draw) -> None:
    _maybe_queue(draw)
    share = draw.between(0.05, 0.8)
    if "queue_bytes" in draw.path and draw.happens(0.3):
        # Above what the path holds but below its queue's capacity: the window is full without cost.
        share = draw.between(1.0, 1.0 + draw.path["queue_bytes"] / draw.bdp_bytes)
    window = max(4 * _MSS_BYTES, share * draw.bdp_bytes)
    draw.receiver[_RMEM] = f"4096 {min(131072, round(2 * window))} {round(2 * window)}"
    draw.expected_mbps = min(draw.rate_mbps, draw.rate_mbps * window / draw.bdp_bytes)


def _send_buffer(draw: _Draw) -> None:
    _maybe_queue(draw)
    share = draw.between(0.05, 0.8)
    size = max(16 * _MSS_BYTES, 2 * share * draw.bdp_bytes)
    draw.sender[_WMEM] = f"4096 {min(16384, round(size))} {round(size)}"
    draw.expected_mbps = min(draw.rate_mbps, draw.rate_mbps * size / 2 / draw.bdp_bytes)


def _random_loss(draw: _Draw) -> None:
    _maybe_queue(draw, 0.5)
    draw.path["loss_percent"] = _round(_losses(draw, LOSS_PERCENT))


def _bursty_loss(draw: _Draw) -> None:
    _maybe_queue(draw, 0.5)
    frames = draw.between(3.0, 12.0)
    draw.path |= {"burst_loss_percent": _round(frames / 2 * _losses(draw, BURSTS_PERCENT)), "burst_frames": frames}


def _losses(draw: _Draw, limits: tuple[float, float]) -> float:
    """Return a loss percentage at which Reno would reach a share of the rate (Mathis et al., 1997).

    BBR is unaffected and expected to reach the full rate.
    """
    share = draw.between(*LOSSY_SHARE)
    frames_a_round_trip = draw.bdp_bytes / _MSS_BYTES
    percent = 100 * (_MATHIS / (share * max(frames_a_round_trip, 1.0))) ** 2
    percent = min(max(percent, limits[0]), limits[1])
    if draw.algorithm != "bbr":
        reached = _MATHIS / (math.sqrt(percent / 100) * frames_a_round_trip)
        draw.expected_mbps = draw.rate_mbps * min(1.0, 1.3 * reached)
    return percent


def _policer(draw: _Draw) -> None:
    held = draw.rate_mbps * 125 * max(draw.rtt_ms, 10.0)
    draw.path["policer_mbps"] = draw.rate_mbps
    draw.path["policer_burst_bytes"] = max(15_000, round(draw.between(0.1, 2.0) * held))
    draw.path["rate_mbps"] = _round(draw.rate_mbps * draw.between(3.0, 20.0))
    draw.expected_mbps = 0.7 * draw.rate_mbps


def _slow_reader(draw: _Draw) -> None:
    _maybe_queue(draw)
    share = draw.between(0.1, 0.8)
    draw.workload["drive"] = {
        "rate_mbps": _round(share * draw.rate_mbps),
        "chunk_bytes": draw.one_of((4096, 16384, 65536)),
    }
    draw.expected_mbps = share * draw.rate_mbps
    _reader_buffer(draw)


def _stalled_reader(draw: _Draw) -> None:
    _maybe_queue(draw)
    # The number of parts; the size is chosen later.
    stalls, seconds = draw.one_of((1, 2, 3, 5)), draw.between(0.3, 3.0)
    draw.workload["drive"] = {"stall_bytes": stalls + draw.random.random(), "stall_s": seconds}
    draw.pauses_s = stalls * seconds
    _reader_buffer(draw)


def _oscillating_reader(draw: _Draw) -> None:
    _maybe_queue(draw)
    share = draw.between(0.03, 0.3)
    slow = draw.between(10.0, 60.0)
    # Loops, and the percentage of each that is read slowly; the size is chosen later.
    draw.workload["drive"] = {
        "rate_mbps": _round(share * draw.rate_mbps),
        "fast_bytes": slow,
        "slow_bytes": draw.one_of((2, 3, 4, 6)) + draw.random.random(),
        "chunk_bytes": draw.one_of((16384, 65536)),
    }
    draw.expected_mbps = draw.rate_mbps / (1 + slow / 100 * (1 / share - 1))
    _reader_buffer(draw)


def _reader_buffer(draw: _Draw) -> None:
    """Choose a buffer from about what the path holds to ample."""
    size = round(draw.between(2.0, 16.0) * max(draw.bdp_bytes, 32_768.0))
    draw.receiver[_RMEM] = f"4096 {min(131072, size)} {min(size, 64 << 20)}"


def _paced_writer(draw: _Draw) -> None:
    _maybe_queue(draw)
    share = draw.between(0.1, 0.8)
    chunk = draw.one_of((1000, 4096, 16384, 65536))
    draw.workload["serve"] = {"rate_mbps": _round(share * draw.rate_mbps), "chunk_bytes": chunk}
    draw.expected_mbps = share * draw.rate_mbps
    # Each write is a system call: allow a few thousand at most.
    if chunk == 1000:
        draw.workload["serve"]["rate_mbps"] = min(draw.workload["serve"]["rate_mbps"], 8.0)
        draw.expected_mbps = min(draw.expected_mbps, 8.0)


def _pausing_writer(draw: _Draw) -> None:
    _maybe_queue(draw)
    pauses, seconds = draw.one_of((2, 4, 8, 16)), draw.between(0.3, 2.0)
    draw.workload["serve"] = {"pause_bytes": pauses + draw.random.random(), "pause_s": seconds}
    draw.pauses_s = pauses * seconds


def _short(draw: _Draw) -> None:
    _maybe_queue(draw)
    draw.is_short = True
    draw.workload["serve"]["bytes"] = round(min(BYTES[1], max(60_000, draw.between(0.5, 4.0) * draw.bdp_bytes)))
    draw.expected_mbps = draw.rate_mbps / 4


def _messages(draw: _Draw) -> None:
    _maybe_queue(draw, 0.3)
    size = min(MESSAGE_BYTES[1], max(MESSAGE_BYTES[0], draw.between(0.05, 0.8) * draw.bdp_bytes))
    gap_s = _round(draw.between(1.5, 6.0) * (0.2 + draw.rtt_ms / 1000))
    count = draw.one_of((12, 20, 30))
    draw.workload |= {
        "name": "messages",
        "serve": {"message_bytes": round(size), "count": count, "gap_s": gap_s},
        "drive": {},
    }
    draw.pauses_s = count * gap_s


def _round(value: float) -> float:
    """Round to three digits for readability."""
    return float(f"{value:.3g}")


_RMEM, _WMEM, _ECN = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_ecn"
_STORIES: dict[str, Callable[[_Draw], None]] = {
    "drop-tail": _drop_tail,
    "managed-queue": _managed_queue,
    "dctcp": _dctcp,
    "cross-traffic": _cross,
    "bloated-queue": _bloated,
    "card": _card,
    "window": _window,
    "window-too": _window,
    "send-buffer": _send_buffer,
    "random-loss": _random_loss,
    "random-loss-too": _random_loss,
    "bursty-loss": _bursty_loss,
    "policer": _policer,
    "slow-reader": _slow_reader,
    "stalled-reader": _stalled_reader,
    "oscillating-reader": _oscillating_reader,
    "paced-writer": _paced_writer,
    "pausing-writer": _pausing_writer,
    "short": _short,
    "messages": _messages,
}
STORIES = tuple(_STORIES)
