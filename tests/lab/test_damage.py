"""A damaged scenario is read, or one error names the problem."""

from __future__ import annotations

from pathlib import Path

from damaged import damaged
from hypothesis import example, given, settings

import tcpwin.lab
from tcpwin.lab.scenario import ScenarioError, read_scenario

TRUTHS = [path.read_bytes() for path in sorted((Path(tcpwin.lab.__file__).parent / "scenarios").glob("*.toml"))]

WITHOUT_SETTINGS = next(truth for truth in TRUTHS if b"sysctl" not in truth)


@settings(max_examples=300, deadline=None)
@given(damaged(TRUTHS))
@example(b"title = " + b"[" * 3000)
@example(WITHOUT_SETTINGS + '\n[sysctl]\n"\u202enet.ipv4.tcp_rmem" = "1"\n'.encode())
def test_any_damage_is_a_scenario_or_one_error(content: bytes) -> None:
    said = "nothing"
    try:
        read_scenario("some-name", content.decode("utf8", "replace"))
    except ScenarioError as error:
        said = str(error)
    assert said
    assert said.isprintable()
