"""`tcpwin nstat`: increases with rates, resets and meanings, single steps, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars
import pyarrow
import pytest
from cases import all_cases
from cli.command import TEXT, refused, tcpwin
from reference import LAB_RUNS

from tcpwin.hosts.counters import MEANINGS

DOCS = Path(__file__).parents[2] / "tcpwin" / "docs" / "hosts"

# TcpRetransSegs runs backwards once: 2 plus 4 are certain. TcpCurrEstab is a gauge, not a counter.
RUNS = """### 1700000000
TcpExt: PruneCalled TCPTimeouts TCPOrigDataSent Nonsense
TcpExt: 5 7 1000 3
Tcp: InSegs CurrEstab RetransSegs
Tcp: 2000 4 12
### 1700000002
TcpExt: PruneCalled TCPTimeouts TCPOrigDataSent Nonsense
TcpExt: 15 7 3000 3
Tcp: InSegs CurrEstab RetransSegs
Tcp: 4000 9 2
what
### 1700000004
TcpExt: PruneCalled TCPTimeouts TCPOrigDataSent Nonsense
TcpExt: 25 8 3000 8
Tcp: InSegs CurrEstab RetransSegs
Tcp: 4500 1 6
"""
TABLE = """3 samples, 2023-11-14 22:13:20.000 to 22:13:24.000 UTC (4 s)

counter                increase  per second  what it counts
TcpRetransSegs              ≥ 6         1.5  Segments retransmitted for any reason, including SYN and SYN/ACK.
TcpExtPruneCalled            20           5  Times that a segment did not fit into a socket's receive memory, so its
                                             queues were collapsed and pruned.
TcpExtTCPTimeouts             1        0.25  Retransmission timeouts of data, SYN, SYN/ACK and FIN; kernels without
                                             commit e1561fe2dd69 leave out repeated ones and those in recovery or
                                             disorder.
TcpInSegs                 2,500         625  Segments received, including bad ones; segments merged by GRO count once.
TcpExtTCPOrigDataSent     2,000         500  Segments with data sent for the first time.

1 more counter grew: --all shows them.
≥: 1 counter ran backwards: the host or its network namespace restarted, or a counter wrapped. All increases are lower
bounds.
"""
RESET = TABLE.splitlines()[-2:]
# Name, increase, rate, ran backwards, number in the last sample.
TOTAL = [
    ("TcpRetransSegs", 6, 1.5, True, 6),
    ("TcpExtPruneCalled", 20, 5.0, False, 25),
    ("TcpExtTCPTimeouts", 1, 0.25, False, 8),
    ("TcpInSegs", 2500, 625.0, False, 4500),
    ("TcpExtTCPOrigDataSent", 2000, 500.0, False, 3000),
]
STEPS = [
    [
        ("TcpRetransSegs", 2, 1.0, True),
        ("TcpExtPruneCalled", 10, 5.0, False),
        ("TcpInSegs", 2000, 1000.0, False),
        ("TcpExtTCPOrigDataSent", 2000, 1000.0, False),
    ],
    [
        ("TcpRetransSegs", 4, 2.0, False),
        ("TcpExtPruneCalled", 10, 5.0, False),
        ("TcpExtTCPTimeouts", 1, 0.5, False),
        ("TcpInSegs", 500, 250.0, False),
    ],
]
START_NS, MIDDLE_NS, END_NS = (s * 10**9 for s in (1_700_000_000, 1_700_000_002, 1_700_000_004))
ASSUMED = [
    "The samples do not show whether they count since boot or since the previous sample; it was inferred from whether "
    "a count",
    "fell.",
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "counters.txt"
    path.write_text(RUNS)
    return path


def lines_of(*arguments: object, **more: Any) -> list[str]:
    done = tcpwin("nstat", *arguments, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def document_of(*arguments: object, **more: Any) -> Any:
    done = tcpwin("nstat", "--json", *arguments, **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, parse_constant=pytest.fail)


def facts_of(name: object, **more: Any) -> dict[str, Any]:
    return {
        "schema": "tcpwin/nstat/1",
        "samples": 3,
        "is_increment": False,
        "is_assumed": False,
        "start_ns": START_NS,
        "end_ns": END_NS,
        "seconds": 4.0,
        "resets": ["TcpRetransSegs"],
        "files": [
            {
                "name": str(name),
                "format": "proc_net",
                "samples": 3,
                "unknown_lines": 1,
                "first_unknown": [{"number": 11, "text": "what"}],
                "notes": [],
            }
        ],
        **more,
    }


def counter_of(name: str, increase: int, rate: float, is_reset: bool, printed: int) -> dict[str, Any]:
    meaning = MEANINGS[name]
    return {
        "name": name,
        "increase": increase,
        "per_second": rate,
        "is_reset": is_reset,
        "printed": printed,
        "meaning": meaning.counts,
        "source": meaning.source,
        "since": meaning.since,
    }


def test_the_table(runs: Path) -> None:
    done = tcpwin("nstat", runs)
    assert (done.returncode, done.stdout.decode()) == (0, TABLE)
    assert done.stderr.decode() == f"tcpwin: warning: {runs}: 1 line not understood (first: line 11)\n"
    assert max(map(len, TABLE.splitlines())) <= 120


def test_the_page_shows_this_table() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf8")
    assert "".join(f"    {line}\n" if line else "\n" for line in TABLE.splitlines()) in page


def test_counters_without_a_meaning(runs: Path) -> None:
    lines = lines_of(runs, "--all")
    assert lines[-4:] == ["TcpExtNonsense                5        1.25", "", *RESET]
    assert lines[:-4] == TABLE.splitlines()[:-4]


def test_each_step(runs: Path) -> None:
    assert lines_of(runs, "--each", "--all") == [
        "22:13:20.000 to 22:13:22.000 (2 s)",
        "  TcpRetransSegs                  ≥ 2           1",
        "  TcpExtPruneCalled                10           5",
        "  TcpInSegs                     2,000       1,000",
        "  TcpExtTCPOrigDataSent         2,000       1,000",
        "22:13:22.000 to 22:13:24.000 (2 s)",
        "  TcpRetransSegs                4           2",
        "  TcpExtPruneCalled            10           5",
        "  TcpExtTCPTimeouts             1         0.5",
        "  TcpInSegs                   500         250",
        "  TcpExtNonsense                5         2.5",
        "",
        "2 steps, 2023-11-14 22:13:20.000 to 22:13:24.000 UTC (4 s)",
        *RESET,
    ]


def test_the_document(runs: Path) -> None:
    assert document_of(runs) == facts_of(runs, counters=[counter_of(*each) for each in TOTAL])


def test_the_document_of_steps(runs: Path) -> None:
    names = ("name", "increase", "per_second", "is_reset")
    steps = [
        {
            "start_ns": start,
            "end_ns": end,
            "is_assumed": False,
            "counters": [dict(zip(names, each, strict=True)) for each in step],
        }
        for start, end, step in zip((START_NS, MIDDLE_NS), (MIDDLE_NS, END_NS), STEPS, strict=True)
    ]
    assert document_of(runs, "--each") == facts_of(runs, steps=steps)


@pytest.mark.parametrize("form", ["csv", "jsonl", "arrow", "parquet"])
def test_formats_hold_the_same(runs: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"out.{form}"
    assert tcpwin("nstat", runs, "-o", out).returncode == 0
    expected = [
        {
            "start_ns": START_NS,
            "end_ns": END_NS,
            "name": name,
            "increase": increase,
            "per_second": rate,
            "is_reset": is_reset,
            "printed": printed,
            "meaning": MEANINGS[name].counts,
        }
        for name, increase, rate, is_reset, printed in TOTAL
    ]
    rows: list[dict[str, Any]]
    if form == "csv":
        lines = out.read_text().splitlines()
        assert lines[0] == "start_ns,end_ns,name,increase,per_second,is_reset,printed,meaning"
        assert lines[4] == f'{START_NS},{END_NS},TcpInSegs,2500,625.0,false,4500,"{MEANINGS["TcpInSegs"].counts}"'
        assert len(lines) == 6
        return
    if form == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    elif form == "arrow":
        rows = pyarrow.ipc.open_file(out).read_all().to_pylist()
    else:
        rows = polars.read_parquet(out).rows(named=True)
    assert rows == expected


def test_rows_of_each_step(runs: Path) -> None:
    rows = [json.loads(line) for line in lines_of(runs, "--each", "--format", "jsonl")]
    assert [(row["start_ns"], row["name"], row["increase"], row["printed"]) for row in rows] == [
        (start, name, increase, None)
        for start, step in zip((START_NS, MIDDLE_NS), STEPS, strict=True)
        for name, increase, _, _ in step
    ]


def test_files_before_and_after(tmp_path: Path) -> None:
    """The two files together show their kind: ten counts stayed or grew."""
    names = [f"TcpExtCount{letter}" for letter in "ABCDEFGHI"]
    for file, retransmitted in (("before", 12), ("after", 17)):
        rows = [*((name, 5) for name in names), ("TcpRetransSegs", retransmitted)]
        text = "#kernel\n" + "".join(f"{name:<32}{count:<16}0.0\n" for name, count in rows)
        (tmp_path / file).write_text(text)
    assert lines_of(tmp_path / "before", tmp_path / "after") == [
        "2 samples, at unknown times",
        "",
        "counter         increase  what it counts",
        "TcpRetransSegs         5  Segments retransmitted for any reason, including SYN and SYN/ACK.",
    ]
    document = document_of(tmp_path / "before", tmp_path / "after")
    assert (document["is_increment"], document["is_assumed"], document["seconds"]) == (False, False, None)


def test_assumptions_are_printed() -> None:
    assert lines_of("-", input=b"TcpRetransSegs 5 0.0\nTcpRetransSegs 9 0.0\n") == [
        "2 samples, at unknown times",
        "",
        "counter         increase  what it counts",
        "TcpRetransSegs         4  Segments retransmitted for any reason, including SYN and SYN/ACK.",
        "",
        *ASSUMED,
    ]


def test_increments_add_up_without_the_first() -> None:
    """Increments in the first sample happened before it."""
    text = "".join(
        f"### {1_700_000_000 + 2 * n}\n#kernel\nTcpRetransSegs {count} 0.0\n" for n, count in enumerate([90, 5, 3, 9])
    )
    assert lines_of("-", input=text.encode()) == [
        "4 samples, 2023-11-14 22:13:20.000 to 22:13:26.000 UTC (6 s)",
        "",
        "counter         increase  per second  what it counts",
        "TcpRetransSegs        17        2.83  Segments retransmitted for any reason, including SYN and SYN/ACK.",
    ]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Tcp: RetransSegs\nTcp: 12\n", "1 sample, at an unknown time: counts since boot"),
        ("### 1700000000\nTcp: RetransSegs\nTcp: 12\n", "1 sample, at 2023-11-14 22:13:20.000 UTC: counts since boot"),
        (
            "TcpRetransSegs 12 0.0\n",
            "1 sample, at an unknown time: unclear whether counted since boot or since the previous sample",
        ),
    ],
)
def test_one_sample(text: str, first: str) -> None:
    assert lines_of("-", input=text.encode()) == [
        first,
        "",
        "counter         printed  what it counts",
        "TcpRetransSegs       12  Segments retransmitted for any reason, including SYN and SYN/ACK.",
    ]
    [counter] = document_of("-", input=text.encode())["counters"]
    assert (counter["increase"], counter["printed"], counter["per_second"]) == (None, 12, None)


def test_nothing_counted() -> None:
    text = b"Tcp: RetransSegs CurrEstab\nTcp: 12 3\nTcp: RetransSegs CurrEstab\nTcp: 12 9\n"
    assert lines_of("-", input=text) == [
        "2 samples, at unknown times",
        "",
        "None of the counters explained here grew.",
    ]
    assert lines_of("-", "--all", input=text)[-1] == "Nothing was counted."


def test_samples_out_of_order_have_no_rates() -> None:
    text = "".join(
        f"### {time}\nTcp: InSegs\nTcp: {count}\n" for time, count in [(1_700_000_005, 3), (1_700_000_000, 7)]
    )
    done = tcpwin("nstat", "-", input=text.encode())
    assert done.stdout.decode().splitlines() == [
        "2 samples, at unknown times",
        "",
        "counter    increase  what it counts",
        "TcpInSegs         4  Segments received, including bad ones; segments merged by GRO count once.",
        "",
        "No rates: the samples have the same time, or are not in time order.",
    ]
    assert done.stderr.decode() == (
        "tcpwin: note: the samples are not in time order: times earlier than a preceding one are ignored\n"
    )


@all_cases(
    ("text", "arguments", "says"),
    [
        (b"", [], "standard input: empty"),
        (b"\0", [], "standard input: binary"),
        (
            b"ESTAB 0 0 10.0.0.1:80 10.0.0.2:9000\n",
            [],
            "standard input: contains no counters of the network stack (ss)",
        ),
        (b"Tcp: InSegs\nTcp: 3\n", ["--each"], "no step from sample to sample: it has one sample"),
        (
            b"### 1700000000\nTcp: InSegs\nTcp: 3\n### 1700000001\nTcp: OutSegs\nTcp: 3\n",
            [],
            "its samples have no counter in common",
        ),
        (
            b"### 1700000000\nTcp: InSegs\nTcp: 3\n### 1700000001\nTcp: OutSegs\nTcp: 3\n",
            ["--each"],
            "no step from sample to sample: its samples have no counter in common",
        ),
    ],
)
@all_cases("form", ["table", "csv", "json"])
def test_input_without_an_answer(text: bytes, arguments: list[str], says: str, form: str) -> None:
    done = tcpwin("nstat", "-", "--format", form, *arguments, input=text)
    assert (done.returncode, done.stdout) == (3, b"")
    assert says in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_what_is_refused(runs: Path, tmp_path: Path) -> None:
    assert refused("nstat", tmp_path / "absent") == f"tcpwin: {tmp_path / 'absent'}: No such file or directory\n"
    assert "not a known snapshot format" in refused("nstat", TEXT)
    assert "parquet is binary" in refused("nstat", runs, "--format", "parquet", status=2)
    assert "is also an input file" in refused("nstat", runs, "-o", runs, status=2)
    assert refused("nstat", runs, "-o", "/dev/full") == "tcpwin: /dev/full: No space left on device\n"


# The order of files.


def counts(*runs: tuple[int | None, int]) -> str:
    """Return /proc/net/snmp at some seconds."""
    return "".join(
        f"{'' if second is None else f'### {1_700_000_000 + second}{chr(10)}'}Tcp: RetransSegs\nTcp: {count}\n"
        for second, count in runs
    )


def written(folder: Path, **texts: str) -> list[Path]:
    """Write the files and return them in order of name."""
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return sorted(folder.iterdir())


def test_files_are_put_in_order_of_their_times(tmp_path: Path) -> None:
    newest_first = written(tmp_path, a=counts((4, 40), (5, 41)), b=counts((2, 20), (3, 30)), c=counts((0, 5), (1, 7)))
    found = document_of(*newest_first)
    assert [(each["name"], each["increase"], each["is_reset"]) for each in found["counters"]] == [
        ("TcpRetransSegs", 36, False)
    ]
    assert (found["start_ns"], found["end_ns"], found["samples"]) == (START_NS, START_NS + 5 * 10**9, 6)
    assert [Path(each["name"]).name for each in found["files"]] == ["c.txt", "b.txt", "a.txt"]


def test_before_comes_before_after(tmp_path: Path) -> None:
    files = written(tmp_path, nstat_after=counts((None, 64)), nstat_before=counts((None, 5)))
    assert [path.name for path in files] == ["nstat_after.txt", "nstat_before.txt"]
    found = document_of(*files)
    assert [(each["name"], each["increase"], each["is_reset"]) for each in found["counters"]] == [
        ("TcpRetransSegs", 59, False)
    ]


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        (
            counts((None, 64)),
            counts((None, 5)),
            "two.txt: counts fall from {one} to it, and no time says which was first: give the earlier one first",
        ),
        (
            counts((0, 5), (3, 9)),
            counts((2, 7), (4, 10)),
            "two.txt: its samples are of the same time as those of {one}: show each alone",
        ),
        (
            counts((0, 5), (3, 9)),
            counts((None, 64)),
            "two.txt: its samples and those of {one} have no order: only one has times",
        ),
    ],
    ids=["unknown order", "the same time", "one without times"],
)
def test_files_that_do_not_follow_each_other_are_not_subtracted(tmp_path: Path, one: str, two: str, told: str) -> None:
    files = written(tmp_path, one=one, two=two)
    assert refused("nstat", *files) == f"tcpwin: {tmp_path}/{told.format(one=files[0])}\n"


def test_the_counters_of_a_bundle(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    for host, last in (("web", 64), ("db", 900)):
        (folder / host).mkdir(parents=True)
        written(folder / host, nstat_after=counts((None, last)), nstat_before=counts((None, 5)))
        (folder / host / "ss.txt").write_text("ESTAB 0 0 10.0.0.1:40000 10.0.0.2:443\n")
    for name, increase in (("web", 59), ("db", 895)):
        found = document_of(folder, "--only", name)
        assert [(each["name"], each["increase"]) for each in found["counters"]] == [("TcpRetransSegs", increase)]
        assert [each["name"] for each in found["files"]] == [f"{name}/nstat_before.txt", f"{name}/nstat_after.txt"]
    said = refused("nstat", folder, status=2)
    assert f"{folder} has counters of 2 hosts; choose one (--only NAME): db, web" in said


@pytest.mark.parametrize("end", ["snd", "rcv"])
def test_a_host_of_a_run_whose_files_are_of_two_clocks(end: str) -> None:
    """The table has times, unlike the counts next to it: analyze reads all, so one suffices here."""
    run = LAB_RUNS / "zero_window_stall5s"
    done = tcpwin("nstat", run, "--only", end, "--json")
    alone = tcpwin("nstat", run / f"nstat_{end}.csv", "--json")
    assert (done.returncode, alone.returncode) == (0, 0)
    assert json.loads(done.stdout)["counters"] == json.loads(alone.stdout)["counters"]
    assert json.loads(done.stdout)["counters"]
    assert f"omitted, as they have no times: nstat_{end}_after.txt, nstat_{end}_before.txt" in done.stderr.decode()
