"""Captures at an address, from a real server on loopback: content, size and time limits."""

import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import all_cases
from cli.command import KEEP_ALIVE, SLOW_READER, TEXT, refused, tcpwin

import tcpwin as library
from tcpwin.errors import SourceError
from tcpwin.sources import fetching

PLACES = {
    "/once": "/keep-alive.pcap",
    "/round": "/round",
    "/file": f"file://{KEEP_ALIVE}",
    "/ftp": "ftp://127.0.0.1/keep-alive.pcap",
}


class _Answers(http.server.SimpleHTTPRequestHandler):
    released = threading.Event()

    def do_GET(self) -> None:
        if (place := PLACES.get(self.path)) is not None:
            self.send_response(302)
            self.send_header("Location", place)
            self.end_headers()
        elif self.path in ("/silent", "/short", "/huge"):
            self.send_response(200)
            self.send_header("Content-Length", str(1 << 50 if self.path == "/huge" else 1000))
            self.end_headers()
            self.wfile.write(b"some bytes")
            if self.path == "/silent":
                self.wfile.flush()
                self.released.wait()
        elif self.path == "/slow":
            self.send_response(200)
            self.end_headers()
            while not self.released.is_set():
                try:
                    self.wfile.write(b"x")
                except OSError:
                    return
        elif self.path == "/nonsense":
            self.wfile.write(b"no answer of a web server\r\n\r\n")
        else:
            self.path = self.path.partition("?")[0]
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    for path in (KEEP_ALIVE, SLOW_READER, TEXT):
        shutil.copy(path, folder)

    def answers(*given: object) -> _Answers:
        return _Answers(*given, directory=str(folder))  # type: ignore[arg-type]

    _Answers.released.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answers) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        _Answers.released.set()
        serving.shutdown()


@pytest.mark.parametrize("path", ["/keep-alive.pcap", "/keep-alive.pcap?signature=secret", "/once"])
def test_a_capture_is_what_it_is_on_disk(path: str, server: str) -> None:
    found = library.analyze(server + path)
    assert found.name == server + path.partition("?")[0]
    assert found.to_json().replace(found.name, "") == library.analyze(KEEP_ALIVE).to_json().replace(str(KEEP_ALIVE), "")
    # Details are read from the copy.
    assert found.connections[0].events == library.analyze(KEEP_ALIVE).connections[0].events


def test_several_are_read_in_time_order(server: str) -> None:
    found = library.analyze([f"{server}/keep-alive.pcap", f"{server}/slow-reader.pcap.gz"])
    here = library.analyze([KEEP_ALIVE, SLOW_READER])
    assert list(found.segments().rows()) == list(here.segments().rows())


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/absent.pcap", "the server answers 404 "),
        ("/round", "the server answers more than 5 redirects"),
        ("/file", "the server answers 302 Found - Redirection to url"),
        ("/ftp", "unknown url type: ftp"),
        ("/short", "only 10 of 1,000 bytes arrived"),
        ("/huge", "bytes"),
        ("/nonsense", "no answer of a web server"),
    ],
)
def test_what_does_not_come(path: str, words: str, server: str) -> None:
    with pytest.raises(SourceError) as raised:
        library.analyze(server + path)
    assert str(raised.value).startswith(server + path)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "path", "words"),
    [
        ("SILENT_SECONDS", 0.2, "/silent", "no data for 0 s"),
        ("MOST_SECONDS", 0.2, "/slow", "takes longer than 0 s: fetch it first"),
        ("MOST_BYTES", 1000, "/slow", "is larger than allowed for an address: 1,000 bytes"),
        ("MOST_BYTES", 1000, "/keep-alive.pcap", "is larger than allowed for an address: 1,000 bytes"),
    ],
)
def test_bounds(name: str, value: float, path: str, words: str, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, name, value)
    with pytest.raises(SourceError, match=words):
        library.analyze(server + path)


def test_redirects_do_not_leave_https() -> None:
    handler = fetching._Redirects()
    asked = fetching.request.Request("https://127.0.0.1/capture.pcap")
    with pytest.raises(fetching.error.URLError, match="from https to an insecure address"):
        handler.redirect_request(asked, None, 302, "Found", None, "http://127.0.0.1/capture.pcap")


@all_cases(
    ("address", "words"),
    [
        ("http://127.0.0.1:1/a.pcap", "Connection refused"),
        ("http:///a.pcap", "no host given"),
        ("http://127.0.0.1:port/a.pcap", "port"),
        ("http://user:secret@127.0.0.1/a.pcap", "a user name is not supported in an address"),
        ("https://127.0.0.1/a b.pcap", "127.0.0.1"),
        ("s3:///a.pcap", "names no bucket or host"),
    ],
)
def test_one_sentence_on_an_address(address: str, words: str) -> None:
    said = refused("analyze", address)
    assert words in said
    assert "secret" not in said


def test_commands_take_addresses(server: str) -> None:
    address = f"{server}/slow-reader.pcap.gz"
    for command in (("check", address), ("analyze", address), ("packets", address)):
        here = tcpwin(*command[:-1], SLOW_READER)
        done = tcpwin(*command)
        assert (done.returncode, done.stderr) == (here.returncode, b"")
        assert done.stdout.decode().replace(address, "") == here.stdout.decode().replace(str(SLOW_READER), "")
    done = tcpwin("check", address, f"{server}/keep-alive.pcap", "--format", "sarif")
    assert done.returncode == 1
    assert f'"uri": "{address}"' in done.stdout.decode()


def test_an_addresss_signature_is_never_shown(server: str, tmp_path: Path) -> None:
    signed = [f"{server}/{path}?signature=SECRET" for path in ("slow-reader.pcap.gz", "keep-alive.pcap", "absent.pcap")]
    for command in (("analyze",), ("check",), ("analyze", "--json"), ("check", "--format", "sarif")):
        for addresses in (signed[:1], signed):
            done = tcpwin(*command, *addresses)
            assert f"{server}/slow-reader.pcap.gz".encode() in done.stdout
            assert b"SECRET" not in done.stdout + done.stderr
    done = tcpwin("report", *signed, "-o", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keep-alive.html", "slow-reader.html"]
    assert not any("SECRET" in path.read_text() for path in tmp_path.iterdir())
    assert b"SECRET" not in done.stdout + done.stderr


def test_nothing_is_left_behind(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for source in (f"{server}/keep-alive.pcap", [f"{server}/keep-alive.pcap", f"{server}/slow-reader.pcap.gz"]):
        assert len(library.analyze(source).connections) > 0
    with pytest.raises(SourceError):
        library.analyze([f"{server}/keep-alive.pcap", f"{server}/absent.pcap"])
    assert list(tmp_path.iterdir()) == []
