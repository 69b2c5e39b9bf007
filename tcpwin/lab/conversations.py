"""Random conversations from stated ranges: requests and answers in which one limit is likely, and none is certain.

In: a seed and a number. Out: a scenario's table; seed and number determine it. Each has a story, the likely limit, and
each story occurs once per round of stories. The lab decides the actual limit.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tcpwin.lab.scenario import Scenario, read_scenario
from tcpwin.lab.toml_text import render_toml

Table = dict[str, Any]
RTT_MS = (0.5, 200.0)
SECONDS = (1.5, 5.0)
"""Expected duration."""
COUNT = (8, 400)
RATE_MBPS = (20.0, 500.0)


@dataclass
class _Draw:
    """A conversation while it is drawn."""

    random: random.Random
    rtt_ms: float = 20.0
    rate_mbps: float = 100.0
    rounds: float = 1.0
    """Expected round trips of an exchange."""
    serve: Table = field(default_factory=dict)
    drive: Table = field(default_factory=dict)
    path: Table = field(default_factory=dict)
    sysctl: Table = field(default_factory=dict)

    def between(self, least: float, most: float) -> float:
        """Return a log-uniform random number with three digits."""
        drawn = math.exp(math.log(least) + self.random.random() * (math.log(most) - math.log(least)))
        return float(f"{drawn:.3g}")

    def share(self, least: float, most: float) -> float:
        """Return a time in seconds, between these multiples of the round trip and at least 0.3 ms."""
        return max(0.0003, float(f"{self.between(least, most) * self.rtt_ms / 1000:.3g}"))


def conversation(seed: int, number: int) -> Scenario:
    """Return conversation `number`, from 0, of a seed."""
    which = conversation_story(seed, number)
    draw = _Draw(random.Random(f"{seed}, conversation {number}"))
    draw.rtt_ms, draw.rate_mbps = draw.between(*RTT_MS), draw.between(*RATE_MBPS)
    draw.drive = {"request_bytes": round(draw.between(40, 1200)), "answer_bytes": round(draw.between(60, 12_000))}
    if draw.random.random() < 0.2:
        draw.sysctl["net.ipv4.tcp_timestamps"] = 0
    _stories(seed)[which](draw)
    if "count" not in draw.drive:
        each_s = draw.rounds * draw.rtt_ms / 1000 + draw.serve.get("work_s", 0) + draw.drive.get("think_s", 0)
        if "slow_every" in draw.serve:
            each_s += draw.serve["slow_s"] / draw.serve["slow_every"]
        each_s += 8 * draw.drive["answer_bytes"] / (draw.rate_mbps * 1e6)
        draw.drive["count"] = min(max(round(draw.between(*SECONDS) / each_s), COUNT[0]), COUNT[1])
    table = {
        "title": f"Drawn: {which.replace('-', ' ')}",
        "sets": ["conversations"],
        "seed": 1 + number,
        "path": {"rtt_ms": draw.rtt_ms, "rate_mbps": draw.rate_mbps, **draw.path},
        "workload": {"name": "conversation", "serve": draw.serve, "drive": draw.drive},
        "sysctl": draw.sysctl,
        "measure": {"sample_ms": 200, "quick": True},
    }
    return read_scenario(f"conversation-{seed}-{number:03d}", render_toml(table))


def conversation_story(seed: int, number: int) -> str:
    """Return the likely limit of a conversation: each story once per round, in a random order."""
    order = list(conversation_stories(seed))
    random.Random(f"{seed}, round of conversations {number // len(order)}").shuffle(order)
    return order[number % len(order)]


def conversation_stories(seed: int) -> tuple[str, ...]:
    """Return the stories of a seed's conversations."""
    return tuple(_stories(seed))


def _stories(seed: int) -> dict[str, Callable[[_Draw], None]]:
    return {name: story for since, stories in _STORIES.items() if seed >= since for name, story in stories.items()}


def _chatty(draw: _Draw) -> None:
    draw.rtt_ms = draw.between(5.0, RTT_MS[1])
    draw.serve["work_s"], draw.drive["think_s"] = draw.share(0.01, 0.4), draw.share(0.01, 0.4)


def _slow_server(draw: _Draw) -> None:
    draw.serve["work_s"] = max(0.004, draw.share(1.5, 20))
    draw.drive["think_s"] = draw.share(0.02, 0.5)


def _few_slow_answers(draw: _Draw) -> None:
    draw.rtt_ms = draw.between(RTT_MS[0], 30.0)
    draw.serve |= {"work_s": draw.share(0.02, 0.3), "slow_every": draw.random.choice((5, 12, 30))}
    draw.serve["slow_s"] = max(0.05, draw.share(1, 4) * draw.serve["slow_every"])


def _late_client(draw: _Draw) -> None:
    draw.drive["think_s"] = max(0.004, draw.share(1.5, 20))
    draw.serve["work_s"] = draw.share(0.02, 0.5)


def _balanced(draw: _Draw) -> None:
    draw.rtt_ms = draw.between(4.0, 100.0)
    draw.serve["work_s"], draw.drive["think_s"] = draw.share(0.3, 2), draw.share(0.3, 2)


def _pipelined(draw: _Draw) -> None:
    draw.rtt_ms = draw.between(10.0, RTT_MS[1])
    draw.drive["depth"] = draw.random.choice((2, 4, 8))
    draw.serve["work_s"] = draw.share(0.02, 1.0)


def _request_in_parts(draw: _Draw) -> None:
    draw.drive |= {"parts": 2, "nagle": True}
    draw.serve["work_s"] = draw.share(0.02, 0.5)
    draw.rtt_ms = draw.between(RTT_MS[0], 60.0)
    draw.drive["count"] = draw.random.choice((20, 40))


def _answer_in_parts(draw: _Draw) -> None:
    draw.serve |= {"parts": draw.random.choice((2, 3)), "nagle": True, "work_s": draw.share(0.02, 0.5)}
    draw.drive["answer_bytes"] = round(draw.between(200, 1200))
    draw.rtt_ms = draw.between(RTT_MS[0], 60.0)
    draw.drive["count"] = draw.random.choice((20, 40))


def _parts_without_nagle(draw: _Draw) -> None:
    draw.drive["parts"], draw.serve["parts"] = 2, 3
    draw.rtt_ms = draw.between(5.0, RTT_MS[1])
    draw.serve["work_s"] = draw.share(0.02, 2)


def _chunks(draw: _Draw) -> None:
    """Stream chunks, each requested after the previous one was shown."""
    draw.drive |= {"answer_bytes": round(draw.between(50_000, 400_000)), "think_s": draw.between(0.2, 0.8)}
    draw.rtt_ms, draw.rounds = draw.between(5.0, 60.0), 4
    draw.drive["count"] = draw.random.choice((8, 12))


def _long_answers(draw: _Draw) -> None:
    """Answers of several flights over a long path."""
    draw.rtt_ms, draw.rounds = draw.between(20.0, RTT_MS[1]), 2
    draw.drive["answer_bytes"] = round(draw.between(15_000, 120_000))
    draw.serve["work_s"], draw.drive["think_s"] = draw.share(0.05, 0.5), draw.share(0.05, 0.5)


def _narrow_path(draw: _Draw) -> None:
    draw.rate_mbps, draw.rtt_ms = draw.between(1.0, 10.0), draw.between(2.0, 40.0)
    draw.drive["answer_bytes"] = round(draw.between(20_000, 100_000))
    draw.serve["work_s"] = draw.share(0.05, 0.5)


def _lossy(draw: _Draw) -> None:
    draw.path["loss_percent"] = draw.between(0.5, 3.0)
    draw.rtt_ms = draw.between(2.0, 60.0)
    draw.serve["work_s"] = draw.share(0.05, 0.5)


def _upload(draw: _Draw) -> None:
    """Chunks, each acknowledged by its receiver's application; some clients send the next ones before."""
    draw.rtt_ms = draw.between(2.0, 100.0)
    draw.drive |= {"request_bytes": round(draw.between(10_000, 120_000)), "answer_bytes": round(draw.between(20, 200))}
    draw.drive["depth"], draw.rounds = draw.random.choice((1, 1, 2, 4)), 2
    draw.serve["work_s"] = draw.share(0.02, 1.0)


def _full_duplex(draw: _Draw) -> None:
    """Messages both ways, by the clock of each side: neither waits for the other."""
    draw.rtt_ms, draw.rounds = draw.between(5.0, RTT_MS[1]), 0
    draw.drive |= {"request_bytes": round(draw.between(40, 600)), "answer_bytes": round(draw.between(40, 1200))}
    draw.drive |= {"think_s": draw.between(0.005, 0.05), "depth": 400}
    draw.serve["work_s"] = float(f"{draw.between(0.05, 0.8) * draw.drive['think_s']:.3g}")


def _long_both(draw: _Draw) -> None:
    """Long requests with long answers, one at a time: RPC with documents."""
    draw.rtt_ms, draw.rounds = draw.between(5.0, 120.0), 2
    draw.drive |= {
        "request_bytes": round(draw.between(4000, 60_000)),
        "answer_bytes": round(draw.between(4000, 60_000)),
    }
    draw.serve["work_s"], draw.drive["think_s"] = draw.share(0.05, 1.0), draw.share(0.05, 1.0)


def _narrow_upload(draw: _Draw) -> None:
    draw.rate_mbps, draw.rtt_ms = draw.between(1.0, 10.0), draw.between(2.0, 40.0)
    draw.drive |= {"request_bytes": round(draw.between(20_000, 100_000)), "answer_bytes": round(draw.between(20, 200))}
    draw.serve["work_s"] = draw.share(0.05, 0.5)


def _pipelined_long(draw: _Draw) -> None:
    """Several requests under way, each with an answer of some segments."""
    draw.rtt_ms = draw.between(10.0, RTT_MS[1])
    draw.drive |= {"depth": draw.random.choice((2, 3, 6)), "answer_bytes": round(draw.between(3000, 30_000))}
    draw.serve["work_s"] = draw.share(0.02, 1.0)


def _lossy_pipelined(draw: _Draw) -> None:
    draw.path["loss_percent"] = draw.between(0.3, 2.0)
    draw.rtt_ms, draw.drive["depth"] = draw.between(5.0, 80.0), draw.random.choice((2, 4))
    draw.serve["work_s"] = draw.share(0.02, 0.5)


_STORIES: dict[int, dict[str, Callable[[_Draw], None]]] = {
    0: {
        "chatty": _chatty,
        "chatty-too": _chatty,
        "slow-server": _slow_server,
        "slow-server-too": _slow_server,
        "few-slow-answers": _few_slow_answers,
        "late-client": _late_client,
        "balanced": _balanced,
        "pipelined": _pipelined,
        "request-in-parts": _request_in_parts,
        "answer-in-parts": _answer_in_parts,
        "parts-without-nagle": _parts_without_nagle,
        "chunks": _chunks,
        "long-answers": _long_answers,
        "narrow-path": _narrow_path,
        "lossy": _lossy,
    },
    24: {"upload": _upload, "upload-too": _upload, "full-duplex": _full_duplex},
    25: {
        "long-both": _long_both,
        "narrow-upload": _narrow_upload,
        "pipelined-long": _pipelined_long,
        "lossy-pipelined": _lossy_pipelined,
    },
}
"""Stories by the first seed that has them; the worlds of earlier ones stay as they were run."""
