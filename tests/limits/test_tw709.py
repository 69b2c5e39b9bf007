"""The catalogue of known defects, and TW709 that finds them by signature, version and settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.story import Story, judged
from stories.window_stories import sample, scaled

from tcpwin import _engine
from tcpwin.limits import Finding, all_rules
from tcpwin.limits.defects import known_defects, read_defect

FIELDS = {row[0] for row in _engine.field_table("direction")} | {
    f"connection.{row[0]}" for row in _engine.field_table("connection")
}


def test_every_defect_has_what_a_reader_needs() -> None:
    defects = known_defects()
    assert len(defects) >= 15
    for each in defects:
        texts = (each.title, each.signature, each.effect, each.fix, each.workaround, *each.sources)
        assert all(text.strip() for text in texts), each.name
        assert {name for name, *_ in each.when} <= FIELDS, each.name
        assert set(each.rules) <= set(all_rules()), each.name


@pytest.mark.parametrize("text", ['title = "x"', 'part = "moon"', "not toml"])
def test_a_bad_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"bad|Expected|Invalid"):
        read_defect(path)


def cygwin(window: int = 53_248) -> Story:
    """A receiver whose window is 53,248 with a shift of 2 from the first ACK on."""
    story = Story().handshake(options=scaled(2), scaled=(60_000, window), near="a")
    for _ in range(30):
        story.burst("a", 20, spacing=0.00001).wait(0.04).ack("b")
    return story


def found(story: Story, folder: Path, **files: str) -> list[Finding]:
    return list(judged(story.analyze(folder, snapshots={f"{name}.txt": text for name, text in files.items()}), "TW709"))


def test_a_signature_on_the_wire(tmp_path: Path) -> None:
    [finding] = found(cygwin(), tmp_path)
    assert finding.evidence.values["defect"] == "cygwin-fixed-buffer"
    assert (finding.owner, finding.side, finding.confidence) == ("server_host", "server", "possible")
    assert finding.remedy is not None
    assert "cygwin1.dll" in finding.remedy.text
    assert not found(cygwin(53_247), tmp_path)


def shrinking() -> Story:
    story = Story().handshake(options=scaled(7), scaled=(502, 502), near="a")
    for number in range(24):
        story.data("a")
        story.wait(0.04).ack("b", window=(100, 502)[number % 2])
    return story


@pytest.mark.parametrize(
    ("kernel", "setting", "count"), [("6.8.0", 1, 1), ("6.8.0", 0, 0), ("6.1.0", 1, 0), ("6.1.0", 0, 0)]
)
def test_records_confirm_or_refute_it(tmp_path: Path, kernel: str, setting: int, count: int) -> None:
    records = {
        "ss_server": sample("b", 0.1, "wscale:7,7 rto:240 rtt:40/1 mss:1460 cwnd:10"),
        "sysctl_server": f"net.ipv4.tcp_shrink_window = {setting}\nnet.ipv4.tcp_rmem = 4096 131072 6291456\n",
        "uname_server": f"{kernel}\n",
    }
    confirmed = [each for each in found(shrinking(), tmp_path, **records) if each.confidence == "likely"]
    names = [each.evidence.values["defect"] for each in confirmed]
    assert names == ["shrink-window-cost"] * count
    # A defect that needs a setting is not guessed.
    assert "shrink-window-cost" not in [each.evidence.values["defect"] for each in found(shrinking(), tmp_path)]
