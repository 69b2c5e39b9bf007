"""`tcpwin ss`: the table, the JSON document, columns, distributions, and errors."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import polars
import pyarrow
import pytest
from cases import all_cases
from cli.command import CAPTURES, TCPWIN, TEXT, refused, tcpwin
from live import HANG_S

DOCS = Path(__file__).parents[2] / "tcpwin" / "docs" / "hosts"

RUNS = """### 1700000000.250
State  Recv-Q Send-Q Local Address:Port       Peer Address:Port  Process
LISTEN 0      4096         0.0.0.0:443             0.0.0.0:*
\t skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d2) cubic cwnd:10
ESTAB  0      147696      10.9.1.1:443            10.9.2.2:36984
\t skmem:(r0,rb131072,t0,tb226304,f2576,w169456,o0,bl0,d0) cubic wscale:7,7 rto:240 rtt:40/1 mss:1448 cwnd:10 \
send 2896000bps snd_wnd:65280
ESTAB  20000  0      [2001:db8::1]:443       [2001:db8::2]:50000
\t skmem:(r40000,rb131072,t0,tb87040,f960,w0,o0,bl0,d0) cubic rto:1004 rtt:804.5/2 mss:1428 cwnd:1 send 14200bps \
delivery_rate 9000000bps busy:2000ms retrans:1/5 rcv_ssthresh:64088
!! ???
### 1700000001.250
State  Recv-Q Send-Q Local Address:Port       Peer Address:Port  Process
LISTEN 0      4096         0.0.0.0:443             0.0.0.0:*
\t skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d7) cubic cwnd:10
ESTAB  0      147696      10.9.1.1:443            10.9.2.2:36984
\t skmem:(r0,rb131072,t0,tb226304,f2576,w169456,o0,bl0,d0) cubic wscale:7,7 rto:240 rtt:40/1 mss:1448 cwnd:26 \
send 7529600bps delivery_rate 1494512bps busy:400ms rwnd_limited:100ms(25.0%) sndbuf_limited:40ms(10.0%) unacked:26 \
rcv_ssthresh:64088 notsent:110048 snd_wnd:65280
"""
# cwnd: 26 × 1448 = 37,648 and 1 × 1428 bytes. The second socket's peer window is 0, which ss omits.
TABLE = """time          state   local              peer
    cwnd    rtt    rto   send  delivery  snd_wnd  rcv_ssth        r/rb   Recv-Q  notsent  retrans  rwnd  sndbuf
22:13:21.250  LISTEN  0.0.0.0:443        0.0.0.0:*
       -      -      -      -         -        -         -    0B/131kB  0/4,096        -        -     -       -
22:13:21.250  ESTAB   10.9.1.1:443       10.9.2.2:36984
  37.6kB   40ms  240ms  7.53M     1.49M   65.3kB    64.1kB    0B/131kB       0B    110kB      0/0   25%     10%
22:13:20.250  ESTAB   [2001:db8::1]:443  [2001:db8::2]:50000
  1.43kB  805ms     1s  14.2k        9M       0B    64.1kB  40kB/131kB     20kB       0B      1/5    0%      0%

cwnd: congestion window in bytes, segments × MSS
send, delivery: bit/s
r/rb: receive memory used / allowed
Recv-Q: received and not yet read; of a LISTEN socket, connections not yet accepted / allowed
retrans: segments retransmitted, now in flight / in all
rwnd, sndbuf: share of the busy time limited by the peer's window, by the send buffer

3 sockets, 5 samples, 2023-11-14 22:13:20.250 to 22:13:21.250 UTC (1 s)
"""
SUMMARY = TABLE.splitlines()[-1]
MEMORY = {"wmem_alloc_bytes": 0, "optmem_bytes": 0, "backlog_bytes": 0}
LISTENER: dict[str, Any] = {
    "index": 1,
    "time_ns": 1_700_000_001_250_000_000,
    "line": 12,
    "state": "LISTEN",
    "accept_queue": 0,
    "accept_queue_max": 4096,
    "local_address": "0.0.0.0",
    "local_port": 443,
    "peer_address": "0.0.0.0",
    "rmem_alloc_bytes": 0,
    "rcvbuf_bytes": 131_072,
    **MEMORY,
    "sndbuf_bytes": 16_384,
    "fwd_alloc_bytes": 0,
    "wmem_queued_bytes": 0,
    "drops": 7,
    "congestion_control": "cubic",
    "cwnd_segments": 10,
}
SENDER: dict[str, Any] = {
    "index": 1,
    "time_ns": 1_700_000_001_250_000_000,
    "line": 14,
    "state": "ESTAB",
    "recv_q_bytes": 0,
    "send_q_bytes": 147_696,
    "local_address": "10.9.1.1",
    "local_port": 443,
    "peer_address": "10.9.2.2",
    "peer_port": 36_984,
    "rmem_alloc_bytes": 0,
    "rcvbuf_bytes": 131_072,
    **MEMORY,
    "sndbuf_bytes": 226_304,
    "fwd_alloc_bytes": 2576,
    "wmem_queued_bytes": 169_456,
    "drops": 0,
    "congestion_control": "cubic",
    "snd_wscale": 7,
    "rcv_wscale": 7,
    "rto_ns": 240_000_000,
    "rtt_ns": 40_000_000,
    "rttvar_ns": 1_000_000,
    "mss_bytes": 1448,
    "cwnd_segments": 26,
    "cwnd_bytes": 37_648,
    "send_bps": 7_529_600.0,
    "delivery_rate_bps": 1_494_512.0,
    "busy_ns": 400_000_000,
    "rwnd_limited_ns": 100_000_000,
    "rwnd_limited_share": 0.25,
    "sndbuf_limited_ns": 40_000_000,
    "sndbuf_limited_share": 0.1,
    "unacked_segments": 26,
    "rcv_ssthresh_bytes": 64_088,
    "notsent_bytes": 110_048,
    "snd_wnd_bytes": 65_280,
}
RECEIVER: dict[str, Any] = {
    "index": 0,
    "time_ns": 1_700_000_000_250_000_000,
    "line": 7,
    "state": "ESTAB",
    "recv_q_bytes": 20_000,
    "send_q_bytes": 0,
    "local_address": "2001:db8::1",
    "local_port": 443,
    "peer_address": "2001:db8::2",
    "peer_port": 50_000,
    "rmem_alloc_bytes": 40_000,
    "rcvbuf_bytes": 131_072,
    **MEMORY,
    "sndbuf_bytes": 87_040,
    "fwd_alloc_bytes": 960,
    "wmem_queued_bytes": 0,
    "drops": 0,
    "congestion_control": "cubic",
    "rto_ns": 1_004_000_000,
    "rtt_ns": 804_500_000,
    "rttvar_ns": 2_000_000,
    "mss_bytes": 1428,
    "cwnd_segments": 1,
    "cwnd_bytes": 1428,
    "send_bps": 14_200.0,
    "delivery_rate_bps": 9_000_000.0,
    "busy_ns": 2_000_000_000,
    "retrans_segments": 1,
    "retrans_total": 5,
    "rcv_ssthresh_bytes": 64_088,
}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "ss.txt"
    path.write_text(RUNS)
    return path


def lines_of(*arguments: object, **more: Any) -> list[str]:
    done = tcpwin("ss", *arguments, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def document_of(*arguments: object) -> Any:
    done = tcpwin("ss", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, parse_constant=pytest.fail)


def test_the_table(runs: Path) -> None:
    done = tcpwin("ss", runs)
    assert (done.returncode, done.stdout.decode()) == (0, TABLE)
    assert done.stderr.decode() == f"tcpwin: warning: {runs}: 1 line not understood (first: line 9)\n"
    assert max(map(len, TABLE.splitlines())) <= 120


def test_the_page_shows_this_table() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf8")
    indented = "".join(f"    {line}\n" if line else "\n" for line in TABLE.splitlines())
    assert indented in page


def test_standard_input() -> None:
    done = tcpwin("ss", "-", input=RUNS.encode())
    assert (done.returncode, done.stdout.decode()) == (0, TABLE)
    assert b"standard input: 1 line not understood" in done.stderr


def test_the_document(runs: Path) -> None:
    assert document_of(runs) == {
        "schema": "tcpwin/ss/1",
        "samples": [LISTENER, SENDER, RECEIVER],
        "files": [
            {
                "name": str(runs),
                "format": "ss",
                "samples": 5,
                "unknown_lines": 1,
                "first_unknown": [{"number": 9, "text": "!! ???"}],
                "notes": [],
            }
        ],
        "samples_wanted": 5,
        "sockets": 3,
        "first_time_ns": 1_700_000_000_250_000_000,
        "last_time_ns": 1_700_000_001_250_000_000,
        "left_out": 0,
    }


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ([], [12, 14, 7]),
        (["--all"], [3, 5, 7, 12, 14]),
        (["--all", "--limit", 2], [3, 5]),
        (["--limit", 0], []),
        (["--state", "ESTAB"], [14, 7]),
        (["--state", "listen"], [12]),
        (["--state", "ESTAB", "--state", "LISTEN"], [12, 14, 7]),
        (["--state", "TIME-WAIT"], []),
        (["--filter", "dport = :36984"], [14]),
        (["--filter", "dst 2001:db8::/32"], [7]),
        (["--filter", "src 10.0.0.0/8 or state listen"], [12, 14]),
        (["--filter", "not sport = :443"], []),
        (["--filter", "dport > :40000", "--state", "established"], [7]),
        (["--sort", "cwnd_bytes"], [14, 7, 12]),
        (["--sort", "rtt_ns"], [7, 14, 12]),
        (["--sort", "drops", "--all", "--limit", 2], [12, 3]),
        (["--sort", "local_address"], [12, 14, 7]),
        (["--sort", "app_limited"], [12, 14, 7]),
        (["--sort", "timer"], [12, 14, 7]),
    ],
)
def test_which_samples_and_in_which_order(runs: Path, arguments: list[object], lines: list[int]) -> None:
    document = document_of(runs, *arguments)
    assert [sample["line"] for sample in document["samples"]] == lines


def test_lines_of_json_are_the_documents_samples(runs: Path) -> None:
    rows = [json.loads(line) for line in lines_of(runs, "--all", "--format", "jsonl")]
    assert rows == document_of(runs, "--all")["samples"]


def test_the_fields_named(runs: Path) -> None:
    assert lines_of(runs, "--field", "rtt_ns, cwnd_bytes,timer", "--field", "rwnd_limited_share,drops") == [
        "time          state   local              peer                 rtt_ns  cwnd_bytes  timer  rwnd_limited_share"
        "  drops",
        "22:13:21.250  LISTEN  0.0.0.0:443        0.0.0.0:*                 -           -      -                   -"
        "      7",
        "22:13:21.250  ESTAB   10.9.1.1:443       10.9.2.2:36984         40ms      37.6kB      -                 25%"
        "      0",
        "22:13:20.250  ESTAB   [2001:db8::1]:443  [2001:db8::2]:50000   805ms      1.43kB      -                   -"
        "      0",
        "",
        SUMMARY,
    ]
    assert document_of(runs, "--field", "line,snd_wnd_bytes")["samples"] == [
        {"line": 12, "snd_wnd_bytes": None},
        {"line": 14, "snd_wnd_bytes": 65_280},
        {"line": 7, "snd_wnd_bytes": None},
    ]


COLUMNS = ("time_ns", "state", "peer_port", "app_limited", "send_bps")
CELLS = [
    (1_700_000_001_250_000_000, "LISTEN", None, None, None),
    (1_700_000_001_250_000_000, "ESTAB", 36_984, None, 7_529_600.0),
    (1_700_000_000_250_000_000, "ESTAB", 50_000, None, 14_200.0),
]


@pytest.mark.parametrize("form", ["csv", "arrow", "parquet", "jsonl", "json"])
@pytest.mark.parametrize("is_named", [True, False])
def test_formats_hold_the_same(runs: Path, tmp_path: Path, form: str, is_named: bool) -> None:
    out = tmp_path / f"out.{form if is_named else 'txt'}"
    done = tcpwin("ss", runs, "-o", out, "--field", ",".join(COLUMNS), *([] if is_named else ["--format", form]))
    assert (done.returncode, done.stdout) == (0, b"")
    rows: list[dict[str, Any]]
    if form == "csv":
        assert out.read_text() == (
            "time_ns,state,peer_port,app_limited,send_bps\n"
            "1700000001250000000,LISTEN,,,\n"
            "1700000001250000000,ESTAB,36984,,7529600.0\n"
            "1700000000250000000,ESTAB,50000,,14200.0\n"
        )
        return
    if form == "arrow":
        rows = pyarrow.ipc.open_file(out).read_all().to_pylist()
    elif form == "parquet":
        rows = polars.read_parquet(out).rows(named=True)
    elif form == "json":
        rows = json.loads(out.read_text())["samples"]
    else:
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows == [dict(zip(COLUMNS, cells, strict=True)) for cells in CELLS]


def test_columns_of_everything(runs: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(tcpwin("ss", runs, "--format", "csv").stdout.decode())))
    assert len(rows) == 3
    assert (len(rows[0]), rows[1]["cwnd_bytes"], rows[1]["users"], rows[0]["line"]) == (len(rows[1]), "37648", "", "12")


def test_a_table_into_a_file(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    assert tcpwin("ss", runs, "-o", out).stdout == b""
    assert out.read_text() == TABLE


def test_several_files(runs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("ESTAB 0 904 10.0.0.1:80 10.0.0.2:9000\n")
    assert lines_of(runs, other, "--filter", "dport > :9 and not dst 2001:db8::/32", "--field", "send_q_bytes") == [
        "file  time          state  local         peer            send_q_bytes",
        "1     22:13:21.250  ESTAB  10.9.1.1:443  10.9.2.2:36984         148kB",
        "2     -             ESTAB  10.0.0.1:80   10.0.0.2:9000           904B",
        "",
        "2 sockets, 3 samples of 6, 2023-11-14 22:13:20.250 to 22:13:21.250 UTC (1 s)",
        f"file 1: {runs}",
        f"file 2: {other}",
    ]
    document = document_of(runs, other)
    assert [sample["file"] for sample in document["samples"]] == [str(runs)] * 3 + [str(other)]
    assert [file["samples"] for file in document["files"]] == [5, 1]


def test_plain_sockets_show_what_they_have() -> None:
    assert lines_of("-", input=b"ESTAB 0 904 10.0.0.1:80 10.0.0.2:9000\n") == [
        "state  local        peer",
        "  Recv-Q  Send-Q",
        "ESTAB  10.0.0.1:80  10.0.0.2:9000",
        "      0B    904B",
        "",
        "Recv-Q: received and not yet read; of a LISTEN socket, connections not yet accepted / allowed",
        "",
        "1 socket, 1 sample, at unknown times",
    ]


def test_a_distribution(runs: Path) -> None:
    # 65,280 and 0, which ss omits; the listening socket has no window.
    assert lines_of(runs, "--distribution", "snd_wnd_bytes") == [
        "snd_wnd_bytes of 2 sockets",
        "  min        0      0B",
        "  p25        0      0B",
        "  p50        0      0B",
        "  p75   65,280  65.3kB",
        "  p85   65,280  65.3kB",
        "  p95   65,280  65.3kB",
        "  p99   65,280  65.3kB",
        "  max   65,280  65.3kB",
        "  mean  32,640  32.6kB",
        "  sum   65,280  65.3kB",
        "",
        SUMMARY,
    ]


def test_distributions(runs: Path) -> None:
    arguments = ["--distribution", "drops,rtt_ns", "--distribution", "rcv_space_bytes"]
    assert lines_of(runs, *arguments) == [
        "field           count  min  p25  p50   p75   p85   p95   p99   max  mean   sum",
        "drops               3    0    0    0     7     7     7     7     7 2.333     7",
        "rtt_ns              2 40ms 40ms 40ms 805ms 805ms 805ms 805ms 805ms 422ms 845ms",
        "rcv_space_bytes     0    -    -    -     -     -     -     -     -     -     -",
        "",
        SUMMARY,
    ]
    document = document_of(runs, *arguments)
    names = ["count", "min", "max", "mean", "sum", "p25", "p50", "p75", "p85", "p95", "p99"]
    expected = [
        {"field": "drops"} | dict(zip(names, [3, 0, 7, 7 / 3, 7, 0, 0, 7, 7, 7, 7], strict=True)),
        {"field": "rtt_ns"}
        | dict(zip(names, [2, *(ms * 500_000 for ms in [80, 1609, 844.5, 1689, 80, 80, *[1609] * 4])], strict=True)),
        {"field": "rcv_space_bytes"} | dict.fromkeys(names) | {"count": 0},
    ]
    assert document["distributions"] == expected
    assert (document["schema"], document["sockets"]) == ("tcpwin/ss/1", 3)
    assert [json.loads(line) for line in lines_of(runs, *arguments, "--format", "jsonl")] == expected


def test_all_distributions_leave_out_absent_fields(runs: Path) -> None:
    lines = lines_of(runs, "--distribution", "all")
    names = [line.split()[0] for line in lines[1:-2]]
    assert names[:3] == ["recv_q_bytes", "send_q_bytes", "accept_queue"]
    assert "rcv_space_bytes" not in names
    assert names[-1] == "cwnd_bytes"
    assert max(map(len, lines)) <= 120


def test_one_field_that_no_socket_has(runs: Path) -> None:
    assert lines_of(runs, "--distribution", "minrtt_ns") == ["minrtt_ns: reported by none of 3 sockets", "", SUMMARY]


def test_selecting_nothing_is_not_an_error(runs: Path) -> None:
    assert lines_of(runs, "--state", "CLOSING") == ["0 sockets, 0 samples of 5, at unknown times"]
    assert lines_of(runs, "--state", "CLOSING", "--distribution", "all") == [
        "0 sockets, none with any number",
        "",
        "0 sockets, 0 samples of 5, at unknown times",
    ]


def test_samples_of_the_collector(tmp_path: Path) -> None:
    socket = {"cookie": 7, "state": "ESTAB\x1b[31m", "local_address": "::1", "local_port": 80, "rtt_ns": 5_000_000}
    records = [
        {"type": "start", "schema": "tcpwin/snap/1", "time_ns": 10**18, "kernel": {"release": "6.1"}},
        {"type": "sample", "time_ns": 10**18, "whole": True, "sockets": [socket]},
        {"type": "sample", "time_ns": 10**18 + 10**9, "changes": [{"cookie": 7, "rtt_ns": 6_000_000}]},
    ]
    path = tmp_path / "snap.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert lines_of(path, "--field", "rtt_ns") == [
        "time          state          local     peer  rtt_ns",
        "01:46:41.000  ESTAB\\x1b[31m  [::1]:80  :*       6ms",
        "",
        "1 socket, 2 samples, 2001-09-09 01:46:40.000 to 01:46:41.000 UTC (1 s)",
    ]


COUNTERS = b"#kernel\nTcpInSegs                       100                0.0\n"


@all_cases(
    ("data", "says"),
    [
        (b"", "standard input: empty"),
        (b"\0\1\2", "standard input: binary, not text"),
        (b"nothing of the kind\n", "standard input: not a known snapshot format"),
        (b"State Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n", "input: no TCP socket in it (ss)"),
        (COUNTERS, "standard input: no TCP socket in it (nstat)"),
    ],
)
@all_cases("form", ["table", "csv"])
def test_input_without_sockets(data: bytes, says: str, form: str) -> None:
    done = tcpwin("ss", "-", "--format", form, input=data)
    assert (done.returncode, done.stdout) == (3, b"")
    assert says in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_a_file_without_sockets_beside_one_with(runs: Path, tmp_path: Path) -> None:
    other = tmp_path / "nstat.txt"
    other.write_bytes(COUNTERS)
    done = tcpwin("ss", other, runs)
    assert done.returncode == 0
    assert f"warning: {other}: no TCP socket in it (nstat)" in done.stderr.decode()
    assert "no TCP socket in it (and none in 1 more)" in refused("ss", other, other)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert refused("ss", tmp_path / "absent") == f"tcpwin: {tmp_path / 'absent'}: No such file or directory\n"
    (tmp_path / "empty").mkdir()
    assert "no sockets in this bundle (no snapshots)" in refused("ss", tmp_path / "empty")
    assert "not a known snapshot format" in refused("ss", TEXT)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--field", "rtt"], "a socket has no field 'rtt': did you mean rtt_ns"),
        (["--distribution", "state"], "a socket has no numeric field 'state'"),
        (["--sort", "x" * 5000], f"a socket has no field '{'x' * 40}'"),
        (["--state", "FOO"], "expected a state"),
        (["--filter", "dport ="], "expected a port"),
        (["--limit", "-1"], "-1 is not in the range"),
        (["--format", "arrow"], "arrow is binary: name a file with -o OUT"),
        (["--format", "parquet"], "parquet is binary: name a file with -o OUT"),
        (["--json", "--format", "csv"], "--json and --format csv exclude each other"),
        (["--distribution", "rtt_ns", "--limit", "1"], "--distribution covers all sockets"),
        (["-", "-"], "standard input (-) can be read once"),
    ],
)
def test_wrong_usage(runs: Path, arguments: list[str], says: str) -> None:
    assert says in refused("ss", runs, *arguments, status=2)


def test_the_input_is_refused_as_output(runs: Path) -> None:
    text = refused("ss", runs, "-o", runs, status=2)
    assert "is also an input file; choose another output" in text
    assert runs.read_text() == RUNS


@pytest.mark.parametrize("form", ["table", "csv", "json", "arrow", "parquet"])
def test_output_that_cannot_be_written(runs: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "absent" / "out"
    assert refused("ss", runs, "--limit", 0, "--format", form, "-o", out) == (
        f"tcpwin: {out}: No such file or directory\n"
    )


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_full_disk_is_said_in_one_line(runs: Path, form: str) -> None:
    assert refused("ss", runs, "--field", "line", "--limit", 0, "--format", form, "-o", "/dev/full") == (
        "tcpwin: /dev/full: No space left on device\n"
    )


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_closed_pipe_is_not_an_error(runs: Path, form: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command: list[str | Path] = [TCPWIN, "ss", runs, "--filter", "dport = :36984", "--format", form]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=HANG_S, check=False)
    os.close(writer)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


# Bundles.

BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"
SENDERS, RECEIVERS = "slow-reader/ss_sender.txt", "slow-reader/ss_receiver.txt"


def test_the_sockets_of_a_bundle() -> None:
    found = document_of(BUNDLE)
    assert [(each["name"], each["samples"]) for each in found["files"]] == [(SENDERS, 150), (RECEIVERS, 151)]
    assert [each["file"] for each in found["samples"]] == [SENDERS, RECEIVERS]


@pytest.mark.parametrize("name", ["sender", SENDERS, "ss_sender.txt"])
def test_one_host_or_file_of_a_bundle(name: str) -> None:
    found = document_of(BUNDLE, "--only", name)
    assert [each["name"] for each in found["files"]] == [SENDERS]


def test_refused_options_for_bundles(runs: Path, tmp_path: Path) -> None:
    assert refused("ss", BUNDLE, "--only", "web") == (
        f"tcpwin: {BUNDLE}: no sockets of web in this bundle; it has receiver, sender, {SENDERS}, {RECEIVERS}\n"
    )
    assert "--only chooses a host or a file of a bundle" in refused("ss", runs, "--only", "web", status=2)
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "sysctl.txt").write_text("net.ipv4.tcp_rmem = 4096 131072 6291456\n")
    assert "no sockets in this bundle (sysctl)" in refused("ss", tmp_path / "case")


def test_a_file_of_a_bundle_that_ends_in_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    folder.mkdir()
    line = "ESTAB 0 0 10.0.0.1:40000 10.0.0.2:443\n"
    with gzip.open(folder / "ss_a.txt.gz", "wb", compresslevel=9) as out:
        for _ in range(140):
            out.write(line.encode() + b" " * 1_000_000 + b"\n")
    (folder / "ss_b.txt").write_text(line)
    done = tcpwin("ss", folder, "--all", "--format", "csv")
    assert done.returncode == 0
    first, *rest = done.stderr.decode().splitlines()
    assert first.startswith("tcpwin: warning: ss_a.txt.gz was read up to its sample ")
    assert first.endswith("only: compressed, and unpacks to more than 33,554,432 bytes")
    assert rest == []
    assert done.stdout.decode().count("ss_b.txt") == 1
