"""The page of the articles' numbers: up to date, complete, and able to fail."""

from __future__ import annotations

import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from cases import all_cases
from reference import NO_LAB, ROOT

from tcpwin.cli.program import cli
from tcpwin.lab import find_scenario, kernel_path, run_scenario
from tcpwin.lab.expectation import read_claim
from tcpwin.reference import Article, Entry, articles, references
from tcpwin.reference.article import KINDS, read_article

SCRIPT = SimpleNamespace(**runpy.run_path(str(ROOT / ".ci" / "articles.py")))
FILES = ROOT / "tcpwin" / "reference" / "articles"
EVERY = [(article, entry) for article in articles().values() for entry in article.entries]
LAB = [(article, entry) for article, entry in EVERY if entry.how == "lab"]
# The lab's runs that take longer than the rest together.
LONG = {"max-send-1g", "max-send-4g"}
IDS = {
    "ably": """path transit-least production-p95 target peak-270 peak-450 heartbeats heartbeats-graph rto
        settings-files slow-start-default two-packets delay-180 tcpping-on tcpping-off container
        namespaces ss-line cwnd-bytes links""",
    "cloudflare": """rmem-4mib rate-by-latency scale4 scale3 scale2 scale1 scale0 scale-1 scale-2 scale-3
        ss-fields latency-300ms bdp memory-per-byte sysctls window-128mib patch-1 reader reader-60s
        window-512m2 window-256p1 window-170p2 window-146p3 window-137p4 stock-latency
        stock-histogram-170p2 stock-histogram-146p3 stock-histogram-137p4 patch-2-ramp collapse-max
        collapse-6mib production-hosts old-settings new-settings iowa-old melbourne-old iowa-new
        melbourne-new increase production-windows production-latency notsent-default notsent-on
        notsent-off""",
    "passt": """short-transfer sndbuf-share scale-example window-available ack-interval rtt-range constants
        direct-5ms direct-10ms direct-100ms wirespeed window-default zero-window-update interactive
        below-mss records records-stall boost boost-reach boost-lo-1 boost-lo-2 boost-lo-3 boost-hi-1
        boost-hi-2 boost-hi-3 limit-example duplicate-ack""",
    "tuning": """window-64k rate-30ms scaling-on scaling-off template chunk rmem-default buffer-64k
        buffer-256k buffer-1m buffer-4m bdp-30ms kilo tcp-mem max-send max-send-stages max-send-settings
        max-send-1g-distribution max-send-1g-run max-send-4g-distribution max-send-4g-run ss-tm sizes
        near-200k near-64k""",
    "windows": """netsh-level netsh-others shift-256 level-disabled frames-16384 bdp-85ms rate-85ms
        rate-85ms-measured half-of-the-path largest-scaled registry sftp-lan sftp-wan sftp-path
        largest-window formula unscaled-2-16 old-wan tcp_window_scaling field-range zero-window
        field-least scale-misread normal normal-most normal-window highlyrestricted disabled
        restricted-experimental cloudflare-again""",
}
"""What the articles state beside the tables of their runs."""


def label(case: tuple[Article, Entry]) -> str:
    return f"{case[0].name}/{case[1].id}"


def text_of(name: str) -> str:
    return (FILES / f"{name}.toml").read_text(encoding="utf8")


def problems(name: str, old: str, new: str) -> list[str]:
    """Return the problems of an article after a change of its file."""
    text = text_of(name)
    assert text.count(old) == 1, old
    return list(SCRIPT.problems_of(read_article(name, text.replace(old, new))))


def test_the_page_and_the_numbers_are_up_to_date() -> None:
    assert SCRIPT.check(articles().values()) == []


def test_every_article_is_covered() -> None:
    assert articles().keys() == IDS.keys()
    for name, ids in IDS.items():
        found = [entry.id for entry in articles()[name].entries]
        assert sorted(set(found)) == sorted(found), name
        assert set(ids.split()) - set(found) == set(), name
        assert {entry.kind for entry in articles()[name].entries} == set(KINDS), name


def test_every_run_of_the_tables_has_its_row() -> None:
    """Of the references that tcpwin ships, those with a table of runs."""
    expected = {("cloudflare", f"stock-{run.name}") for run in references()["cloudflare-default-kernel"].runs}
    for name in references():
        workload, _, rtt = name.removeprefix("cloudflare-").partition("-")
        if workload in ("oscil", "iperf3") and name.startswith("cloudflare-"):
            expected |= {("cloudflare", f"{workload}-{rtt}-{run.name}") for run in references()[name].runs}
            expected.add(("cloudflare", f"{workload}-{rtt}-latency"))
    assert len(expected) == 5 + 6 * 6
    expected |= {("passt", f"ramp-{run.name}") for run in references()["passt-ramps"].runs}
    assert expected - {(article.name, entry.id) for article, entry in EVERY} == set()


@all_cases("case", EVERY, ids=label)
def test_every_entry_is_whole(case: tuple[Article, Entry]) -> None:
    _, entry = case
    assert entry.id.isascii()
    assert entry.what[0] != " "
    assert bool(entry.command) == (entry.how != "none")
    assert len(entry.because.split()) != 1
    assert entry.because.endswith((".", "")) if entry.because else True
    if len(entry.numbers) > 1:
        assert all(number.what for number in entry.numbers)


def parsed(words: list[str]) -> dict[str, Any]:
    """Parse a command line; an unknown command or option is an error."""
    command: click.Command | None = cli
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None, words
    return command.make_parser(click.Context(command)).parse_args([each for each in words if each != "--help"])[0]


@all_cases("case", EVERY, ids=label)
def test_every_command_parses(case: tuple[Article, Entry]) -> None:
    _, entry = case
    if entry.command:
        program, *words = shlex.split(entry.command)
        assert program == "tcpwin"
        parsed(words)
        assert [word for word in words if word.startswith("captures/") and not (ROOT / word).is_file()] == []


def scenarios_of(entry: Entry) -> Iterator[str]:
    yield from shlex.split(entry.command)[3:]


@all_cases("case", LAB, ids=label)
def test_a_run_of_the_lab_is_of_one_scenario_and_has_its_values(case: tuple[Article, Entry]) -> None:
    _, entry = case
    [name] = scenarios_of(entry)
    assert find_scenario(name).name == name
    for number in entry.numbers:
        read_claim(f"{number.run} >= 0", where=entry.id)


@all_cases(
    ("name", "old", "new", "said"),
    [
        ("tuning", "article = 17.48", "article = 17.49", "17.49 Mbit/s and tcpwin's 17.48 Mbit/s disagree"),
        ("tuning", "article = 3.75\n", "article = 3.74\n", "tuning/bdp-30ms"),
        ("windows", "article = 106250", "article = 106251", "106,251 bytes and tcpwin's 106,250 bytes disagree"),
        ("ably", 'why = "cwnd-bytes"', "", "1,280 bytes and tcpwin's 327,680 bytes disagree"),
        ("ably", 'why = "cwnd-bytes"', 'why = "no such"', "no reason 'no such'"),
        ("ably", "article = 150\n", "article = 92\n", "below 92 ms"),
        ("ably", 'at = "connections/0/path_rtt_ns"', 'at = "connections/0/path"', "KeyError"),
        ("ably", "recorded = 361120256", "recorded = 371120256", "358 ms and tcpwin's 371.1 ms disagree"),
        ("ably", 'command = "tcpwin explain TW401"', 'command = "tcpwin explain TW999"', "fails with 2"),
        ("cloudflare", "article = 3500,", "article = 3501,", "cloudflare/bdp: rate"),
        ("cloudflare", "article = 131,", "article = 132,", "cloudflare/bdp: BDP"),
        ("cloudflare", "article = [[32, 64]]", "article = [[45, 64]]", "170 MiB at +2"),
        ("cloudflare", "article = [12, 11, 11, 16, 9]", "article = [12, 11, 11, 16]", "oscil-300ms-latency"),
        ("cloudflare", "[[795, 941], [13, 941], [941, 941]]", "[[795, 941], [908, 941], [941, 941]]", "agree, but"),
        ("passt", "article = [13, 0]", "article = [13, 1]", "ramp-500us: retransmissions"),
    ],
)
def test_a_changed_number_is_found(name: str, old: str, new: str, said: str) -> None:
    found = problems(name, old, new)
    assert any(said in problem for problem in found), found


def test_a_changed_page_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "articles.md"
    text = SCRIPT.PAGE.read_text(encoding="utf8")
    assert text.count("BDP 131.2 MB") == 1
    page.write_text(text.replace("BDP 131.2 MB", "BDP 131.3 MB"), encoding="utf8")
    monkeypatch.setitem(SCRIPT.check.__globals__, "PAGE", page)
    found = SCRIPT.check(articles().values())
    assert len(found) == 1
    assert found[0].startswith("articles.md is stale: | window for 3500 Mbit/s over 300 ms |")


@all_cases(
    ("old", "new", "said"),
    [
        ('kind = "system"\nwhat = "London', 'kind = "place"\nwhat = "London', "kind 'place'"),
        ('id = "path"\n', 'id = "path"\nname = 1\n', "unexpected keyword argument 'name'"),
        ('id = "path"\n', "", "id"),
        ('place = "Introduction; Initial measurements"\n', "", "it needs id, place and what"),
        ('command = "tcpwin explain TW401"', "", "it needs a command"),
        ('because = "tcpwin needs only the network namespace."\n', "", "because goes with how = none"),
        ('at = "connections/0/path_rtt_ns"', "", "a number needs one of at, match and run"),
        ("recorded = 361120256", "", "run and recorded go with how = lab"),
        ('bound = "under"', 'bound = "near"', "bound 'near'"),
        ('unit = "kB", bound = "about"', 'unit = "kilo", bound = "about"', "unit 'kilo'"),
    ],
)
def test_a_file_with_a_mistake_is_refused(old: str, new: str, said: str) -> None:
    text = text_of("ably")
    assert text.count(old) == 1
    with pytest.raises(ValueError) as error:  # noqa: PT011 - each message is compared below
        read_article("ably", text.replace(old, new))
    assert said in str(error.value)


def check_run(entry: Entry, folder: Path) -> None:
    """Run the entry's scenario, and compare its values with those recorded."""
    if not kernel_path().is_file():
        pytest.skip(f"{NO_LAB} here")
    [name] = scenarios_of(entry)
    truth = run_scenario(find_scenario(name), "stock", folder, capture=False).truth
    for number in entry.numbers:
        value = read_claim(f"{number.run} >= 0", where=entry.id).found(truth)
        assert value == pytest.approx(number.recorded, rel=number.spread / 100), (name, number.run)


@pytest.mark.nightly
@pytest.mark.parametrize("case", [case for case in LAB if not LONG & {*scenarios_of(case[1])}], ids=label)
def test_the_lab_repeats_its_numbers(case: tuple[Article, Entry], tmp_path: Path) -> None:
    check_run(case[1], tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("case", [case for case in LAB if LONG & {*scenarios_of(case[1])}], ids=label)
def test_the_lab_repeats_its_numbers_of_ten_thousand_connections(case: tuple[Article, Entry], tmp_path: Path) -> None:
    check_run(case[1], tmp_path)
