"""Output of `ss`, compared field by field with values read by hand and by the lab's reader."""

from __future__ import annotations

from decimal import Decimal

from cases import all_cases
from hosts.ss_truth import Case, cases, plain, read_lines, read_text
from lab import ss_text
from reference import LAB_RUNS

from tcpwin.hosts import SnapshotFile, SocketSample
from tcpwin.hosts.formats.ss import FORMAT

ABLY = """\
tcp   ESTAB      0      0      [::ffff:127.0.0.1]:9302     [::ffff:127.0.0.1]:59210
     cubic wscale:7,7 rto:204 rtt:0.023/0.015 ato:40 mss:32768 pmtu:65535 cwnd:10 send 113975.7Mbps
"""
HEADERS = [
    "State      Recv-Q Send-Q        Local Address:Port          Peer Address:Port   ",
    "Netid  State      Recv-Q Send-Q     Local Address:Port       Peer Address:Port   ",
    "Netid State Recv-Q Send-Q Local Address:Port Peer Address:PortProcess",
    "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process ",
    "Recv-Q Send-Q Local Address:Port Peer Address:Port Process",
    "State Local Address:Port Peer Address:PortProcess",
    "Netid Recv-Q Send-Q Local Address:Port Peer Address:Port",
    "Local Address:Port Peer Address:Port Process",
]
OTHER_PROGRAMS = [
    "#kernel\nTcpRetransSegs                  12                 0.0\nTcpExtTCPTimeouts               3          0.0\n",
    "Active Internet connections (servers and established)\n"
    "Proto Recv-Q Send-Q Local Address           Foreign Address         State\n"
    "tcp        0      0 0.0.0.0:22              0.0.0.0:*               LISTEN\n"
    "tcp        0     36 10.0.0.1:22             10.0.0.2:50000          ESTABLISHED\n",
    "[  5] local 10.0.0.1 port 40000 connected to 10.0.0.2 port 5201\n"
    "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n"
    "[  5]   0.00-1.00   sec  1.09 GBytes  9.38 Gbits/sec    0   1.21 MBytes\n",
    "sockets: used 290\nTCP: inuse 5 orphan 0 tw 0 alloc 7 mem 1\n",
    "net.ipv4.tcp_rmem = 4096\t131072\t6291456\n",
    "TcpExt: SyncookiesSent SyncookiesRecv\nTcpExt: 0 0\n",
    "The mss:1448 and the cwnd:10 and the rto:204 of ss -i are in packets, bytes and ms.\nRead on.\nAnd on.\n",
]


@all_cases("case", cases(), ids=lambda case: case.name)
def test_every_field_of_a_truth(case: Case) -> None:
    sockets, unknown = read_text(case.text)
    assert [plain(socket) for socket in sockets] == case.sockets
    assert unknown.count == case.rejected


@all_cases("case", cases(), ids=lambda case: case.name)
def test_a_truth_reads_alike_with_blanks_for_tabs_and_carriage_returns(case: Case) -> None:
    sockets, _ = read_text(case.text.replace("\t", "        ").replace("\n", "\r\n"))
    assert [plain(socket) for socket in sockets] == case.sockets


def test_there_are_more_than_45_different_lines() -> None:
    lines = {line for case in cases() for line in case.text.splitlines() if "Local Address:Port" not in line}
    assert sum(len(case.sockets) for case in cases()) >= 45
    assert len(lines) >= 90


def test_cwnd_counts_segments_as_the_send_rate_itself_proves() -> None:
    (socket,), unknown = read_text(ABLY)
    assert unknown.count == 0
    assert socket.cwnd_bytes == 10 * 32768
    assert socket.rtt_ns == 23_000
    assert socket.send_bps == 113_975_700_000.0
    by_cwnd_bps = socket.cwnd_bytes * 8 * 1_000_000_000 / socket.rtt_ns
    assert abs(socket.send_bps - by_cwnd_bps) <= 50_000
    by_shift_bps = (10 << 7) * 8 * 1_000_000_000 / socket.rtt_ns
    assert by_shift_bps < socket.send_bps / 200


def test_a_counter_that_ss_leaves_out_is_zero_where_there_is_information() -> None:
    (socket,), _ = read_text(ABLY)
    assert socket.count("retrans_total") == 0
    assert socket.count("rcv_wnd_bytes") == 0
    assert socket.count("fwmark") is None


@all_cases("header", HEADERS)
def test_a_header_alone_is_of_ss(header: str) -> None:
    assert FORMAT.recognise([header, "", header]) == 95
    assert read_text(header) == ([], read_text("")[1])


@all_cases("case", [case for case in cases() if not case.rejected], ids=lambda case: case.name)
def test_a_truth_is_recognised_without_its_header(case: Case) -> None:
    lines = [line for line in case.text.split("\n") if "Local Address:Port" not in line and line[:1] != "#"]
    if all("state" in socket for socket in case.sockets):
        assert FORMAT.recognise(lines) >= 70


@all_cases("text", OTHER_PROGRAMS)
def test_output_of_other_programs_is_not_recognised(text: str) -> None:
    assert FORMAT.recognise(text.split("\n")) <= 20
    sockets, unknown = read_text(text)
    assert sockets == []
    assert unknown.count == len(text.splitlines())


def test_a_file_of_headers_without_a_socket_is_of_ss() -> None:
    file = SnapshotFile(b"### 1700000000.1\n%s\n### 1700000000.3\n%s\n" % (HEADERS[2].encode(), HEADERS[2].encode()))
    assert (file.format, list(file), file.unknown.count) == ("ss", [], 0)


def test_ten_thousand_sockets_are_read() -> None:
    text = [line for number in range(10_000) for line in _two_lines(number)]
    sockets, unknown = read_lines(text)
    assert (len(sockets), unknown.count) == (10_000, 0)
    assert sockets[9_999].cwnd_segments == 10_009


def _two_lines(number: int) -> list[str]:
    return [
        f"ESTAB 0      107152      10.9.1.1:5201     10.9.{number % 200}.2:{number + 20000}",
        "\t skmem:(r0,rb262144,t0,tb87040,f1392,w117392,o0,bl0,d0) ts sack cubic wscale:7,7 rto:1400 rtt:466.001/233 "
        f"mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:{number + 10} ssthresh:20 bytes_sent:14480 bytes_retrans:1448 "
        "bytes_acked:13000 segs_out:10 segs_in:2 data_segs_out:10 send 248583bps lastsnd:30 lastrcv:40 lastack:40 "
        "pacing_rate 497160bps delivery_rate 497160bps delivered:1 app_limited busy:40ms rwnd_limited:10ms(25.0%) "
        "unacked:10 retrans:0/3 rcv_rtt:20 rcv_space:14480 rcv_ssthresh:64088 notsent:92672 minrtt:466.001 "
        "rcv_ooopack:3 snd_wnd:64256 rcv_wnd:65536",
    ]


def test_every_file_of_the_lab_agrees_with_the_labs_own_reader() -> None:
    paths = sorted(LAB_RUNS.glob("*/ss_*.txt"))
    assert len(paths) >= 44
    for path in paths:
        text = path.read_text(encoding="utf8")
        file = SnapshotFile(path)
        sockets = list(file)
        assert (file.format, file.unknown.count) == ("ss", 0), path
        assert [socket.extra for socket in sockets] == [{}] * len(sockets), path
        rows = [line for line in text.splitlines() if line[:1].isupper() and not line.startswith("State")]
        assert len(sockets) == len(rows), path
        has_socket = [run.count("\n") > 2 for run in text.split("### ")[1:]]
        assert {socket.index for socket in sockets} == {index for index, has in enumerate(has_socket) if has}, path
        for socket, lab in zip(sockets, ss_text.read_samples(text), strict=True):
            _compare(socket, lab)


def test_other_files_of_the_lab_are_left_to_others() -> None:
    paths = [path for path in LAB_RUNS.glob("*/*") if path.suffix in (".txt", ".csv", ".json")]
    others = [path for path in paths if not path.name.startswith("ss_")]
    assert len(others) >= 44
    for path in others:
        assert FORMAT.recognise(path.read_text(encoding="utf8").splitlines()[:200]) == 0, path


def _compare(socket: SocketSample, lab: ss_text.Sample) -> None:
    assert (socket.time_ns, socket.state, socket.local_port, socket.peer_port, socket.recv_q_bytes) == (
        lab.time_ns,
        lab.state,
        lab.local_port,
        lab.peer_port,
        lab.recv_q,
    )
    assert socket.send_q_bytes == lab.send_q
    by_letter = ("rmem_alloc", "rcvbuf", "wmem_alloc", "sndbuf", "fwd_alloc", "wmem_queued", "optmem", "backlog")
    memory = [getattr(socket, f"{name}_bytes") for name in by_letter]
    assert [*memory, socket.drops] == [lab.skmem[letter] for letter in ("r", "rb", "t", "tb", "f", "w", "o", "bl", "d")]
    scales = None if socket.snd_wscale is None else (socket.snd_wscale, socket.rcv_wscale)
    assert scales == lab.window_scales
    for token, field in {"cwnd": "cwnd_segments", "mss": "mss_bytes", "snd_wnd": "snd_wnd_bytes"}.items():
        assert getattr(socket, field) == (lab.number(token) or None)
    for token in ("bytes_sent", "bytes_acked", "bytes_received", "bytes_retrans", "segs_out", "segs_in", "delivered"):
        assert (getattr(socket, token) or 0) == lab.number(token)
    for token, name in {"unacked": "unacked_segments", "notsent": "notsent_bytes", "sacked": "sacked_segments"}.items():
        assert (getattr(socket, name) or 0) == lab.number(token)
    assert (socket.congestion_control in lab.tokens, socket.app_limited is True) == (True, "app_limited" in lab.tokens)
    for token, field in {"rto": "rto_ns", "minrtt": "minrtt_ns", "ato": "ato_ns", "rcv_rtt": "rcv_rtt_ns"}.items():
        assert getattr(socket, field) == (int(Decimal(lab.tokens[token]).scaleb(6)) if token in lab.tokens else None)
    smoothed = lab.tokens.get("rtt", "").partition("/")[0]
    assert socket.rtt_ns == (int(Decimal(smoothed).scaleb(6)) if smoothed else None)
    busy = lab.tokens.get("busy", "").removesuffix("ms")
    assert socket.busy_ns == (int(busy) * 1_000_000 if busy else None)
    retrans = lab.tokens.get("retrans")
    assert (socket.retrans_segments, socket.retrans_total) == (
        (None, None) if retrans is None else tuple(map(int, retrans.split("/")))
    )


HEADER = "State  Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n"
UDP = "UNCONN 0      0      127.0.0.53%lo:53    0.0.0.0:*\n\t skmem:(r0,rb212992,t0,tb212992,f0,w0,o0,bl0,d0)\n"
CONNECTED = "ESTAB  0      0      10.0.0.1:40000   10.0.0.2:443\n"
LISTENING = "LISTEN 0      128    0.0.0.0:22          0.0.0.0:*\n"


@all_cases(
    ("text", "states"),
    [
        # ss -uam: an unconnected UDP socket is UNCONN; a connected one looks like TCP's.
        (HEADER + CONNECTED + UDP + CONNECTED, []),
        # ss -ta --bound-inactive: values that only TCP has come first, so the closed socket is TCP's too.
        (HEADER + CONNECTED + LISTENING + UDP, ["ESTAB", "LISTEN", "UNCONN"]),
        # The protocol cannot be determined.
        (HEADER + CONNECTED + CONNECTED, ["ESTAB", "ESTAB"]),
        # ss -ua; ss -ta: each table has one protocol.
        (HEADER + UDP + HEADER + CONNECTED, ["ESTAB"]),
        # A closed TCP socket has the fields of TCP.
        (HEADER + UDP.replace("skmem", "cubic rto:1000 mss:536 skmem") + CONNECTED, ["UNCONN", "ESTAB"]),
        (HEADER + 1500 * CONNECTED + LISTENING, [*1500 * ["ESTAB"], "LISTEN"]),
    ],
)
def test_without_a_protocol_a_table_shows_it(text: str, states: list[str]) -> None:
    sockets, unknown = read_text(text)
    assert ([socket.state for socket in sockets], unknown.count) == (states, 0)
