"""A client, a router and a server in three namespaces; the router is one of several real boxes.

Run as `unshare -n python box.py FOLDER KIND` by root, or with `-rn`. Writes client.pcap, router.pcap and server.pcap.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

SERVER, ROUTER, PORT = "10.2.0.2", "10.1.0.1", 8080
REQUEST = 100
IDLE_S = float(os.environ.get("BOX_IDLE_S", "2.5"))
"""Silence of the client in a conversation; boxes forget it after two thirds."""
FORGETS_S = round(IDLE_S / 1.5) or 1
FORWARD = "add table inet box; add chain inet box forward { type filter hook forward priority 0; };"
INVALID = f"{FORWARD} add rule inet box forward ct state established,new accept; add rule inet box forward"
RULES = {
    "nat": "add table ip nat; add chain ip nat post { type nat hook postrouting priority 100; }; "
    "add rule ip nat post oifname s0 masquerade",
    "clamp": f"{FORWARD} add rule inet box forward tcp flags syn tcp option maxseg size set 1200",
    "conntrack-drop": f"{INVALID} ct state invalid drop",
    "conntrack-reset": f"{INVALID} ct state invalid reject with tcp reset",
    "icmp-blocked": "add table inet box; add chain inet box output { type filter hook output priority 0; }; "
    "add rule inet box output icmp type destination-unreachable drop",
}


def haproxy_config(seconds: float) -> str:
    """Return the configuration of a proxy on the router that closes connections after this time without data."""
    return f"""
defaults
  mode tcp
  timeout connect 5s
  timeout client {round(1000 * seconds)}ms
  timeout server {round(1000 * seconds)}ms
listen box
  bind {ROUTER}:{PORT}
  server one {SERVER}:{PORT}
"""


def load_rules(rules: str, *inside: str) -> None:
    """Load nftables rules, one statement a line."""
    command(*inside, "nft", "-f", "-", text=rules.replace("; ", ";\n").replace(";\n}", "; }"))


def wait_until_listening(*inside: str) -> None:
    while not subprocess.run([*inside, "ss", "-Hltn", f"sport = {PORT}"], check=True, capture_output=True).stdout:
        time.sleep(0.05)


def serve(answer_bytes: int) -> None:
    """Answer requests one by one on each connection: small ones, until one asks for more."""
    listener = socket.create_server((SERVER, PORT))
    while True:
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            continue
        with suppress(OSError):
            while request := connection.recv(REQUEST):
                connection.sendall(bytes(answer_bytes if request[0] else 200))
        os._exit(0)


def ask(connection: socket.socket, *, more: bool = False, least: int = 200) -> None:
    """Send a request, and read its answer or give up."""
    connection.sendall(bytes([more]) * REQUEST)
    while least > 0:
        least -= len(got := connection.recv(65_536))
        if not got:
            return


def converse(kind: str) -> None:
    """Be the client."""
    target = ROUTER if kind == "haproxy" else SERVER
    connection = socket.create_connection((target, PORT))
    connection.settimeout(4)
    for _ in range(4):
        ask(connection)
        time.sleep(0.05)
    with suppress(OSError):
        if kind.startswith("icmp"):
            ask(connection, more=True, least=20_000)
        elif kind == "nat":
            Path(sys.argv[3]).touch()
            time.sleep(0.6)
            ask(connection)
        elif kind == "clamp":
            ask(connection, more=True, least=20_000)
        else:
            time.sleep(IDLE_S)
            connection.settimeout(0.5)
            ask(connection)
    if kind == "conntrack-drop":
        other = socket.create_connection((target, PORT))
        for _ in range(4):
            ask(other)
            time.sleep(0.4)


def command(*words: str, text: str = "") -> None:
    subprocess.run(words, check=True, input=text, text=True)


def inside(space: int | None) -> tuple[str, ...]:
    """Return the words that run a command in the namespace of a process."""
    return ("nsenter", "-t", str(space), "-n") if space else ()


def main(folder: Path, kind: str) -> None:
    """Set up the three, run the conversation, and leave the captures."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, space: int | None = None) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([*inside(space), *words], stdin=subprocess.DEVNULL, start_new_session=True))
        return started[-1]

    try:
        spaces = {}
        for name, net in (("c", "10.1.0"), ("s", "10.2.0")):
            space = spaces[name] = start("unshare", "-n", "sleep", "600").pid
            own = Path("/proc/self/ns/net").readlink()
            while Path(f"/proc/{space}/ns/net").readlink() == own:
                time.sleep(0.01)
            command("ip", "link", "add", f"{name}0", "type", "veth", "peer", "name", f"{name}1", "netns", str(space))
            command("ip", "addr", "add", f"{net}.1/24", "dev", f"{name}0")
            command("ip", "link", "set", f"{name}0", "up")
            for words in (f"addr add {net}.2/24 dev {name}1", f"link set {name}1 up", f"route add default via {net}.1"):
                command(*inside(space), "ip", *words.split())
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        if kind.startswith("icmp"):
            command("ip", "link", "set", "c0", "mtu", "1280")
        load_rules(RULES.get(kind, ""))
        if kind.startswith("conntrack"):
            tracking = Path("/proc/sys/net/netfilter")
            (tracking / "nf_conntrack_tcp_timeout_established").write_text(str(FORGETS_S))
            (tracking / "nf_conntrack_tcp_loose").write_text("0")
        captures = [(None, "router"), (spaces["c"], "client"), (spaces["s"], "server")]
        dumps = []
        for space, name in captures:
            dump = ("tcpdump", "-q", "-i", "any", "-s", "128", "-U", "--immediate-mode", "-Z", "root")
            dumps.append(start(*dump, "-w", str(folder / f"{name}.pcap"), "tcp or icmp", space=space))
        script = str(Path(__file__).resolve())
        start(sys.executable, script, "serve", "20000", space=spaces["s"])
        if kind == "haproxy":
            (folder / "haproxy.cfg").write_text(haproxy_config(FORGETS_S))
            start("haproxy", "-db", "-f", str(folder / "haproxy.cfg"))
        for space in (spaces["s"], None)[: 1 + (kind == "haproxy")]:
            wait_until_listening(*inside(space))
        while not all((folder / f"{name}.pcap").exists() for _, name in captures):
            time.sleep(0.05)
        mark = folder / "asked"
        mark.unlink(missing_ok=True)
        client = start(sys.executable, script, "converse", kind, str(mark), space=spaces["c"])
        if kind == "nat":
            while not mark.exists():
                time.sleep(0.05)
            command(
                "nft", "-f", "-", text=f"{FORWARD}\nadd rule inet box forward tcp dport {PORT} reject with tcp reset\n"
            )
        client.wait(120)
        time.sleep(0.3)
        for dump in dumps:
            dump.terminate()
            dump.wait()
    finally:
        for process in reversed(started):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    elif sys.argv[1] == "converse":
        converse(sys.argv[2])
    else:
        main(Path(sys.argv[1]), sys.argv[2])
