"""nginx with a slow upstream, asked over one connection that is kept open; its log has the time of each request."""

from __future__ import annotations

import http.client
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from servers.network import PORT, SERVER

REQUESTS, WORK_S, THINK_S = 60, 0.015, 0.006
_CONF = """daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; user root;
events {{}}
http {{
  log_format took '$request_time';
  access_log {folder}/server.log took;
  client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  keepalive_requests 100000; {settings}
  server {{ listen {address}:{port}{options}; location / {{ proxy_pass http://unix:{folder}/upstream:; }} }}
}}
"""
_UPSTREAM = """import http.server, socketserver, sys, time
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(float(sys.argv[2]))
        self.send_response(200)
        self.send_header("Content-Length", "3000")
        self.end_headers()
        self.wfile.write(bytes(3000))
    def address_string(self):
        return "nginx"
    def log_message(self, *_):
        pass
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64
Server(sys.argv[1], Slow).serve_forever()
"""


def start(folder: Path, options: str = "", settings: str = "") -> list[subprocess.Popen[Any]]:
    """Run nginx and its upstream."""
    upstream = subprocess.Popen([sys.executable, "-c", _UPSTREAM, str(folder / "upstream"), str(WORK_S)])
    conf = folder / "nginx.conf"
    place = {"folder": folder, "address": SERVER, "port": PORT}
    conf.write_text(_CONF.format(**place, options=options, settings=settings))
    server = subprocess.Popen([shutil.which("nginx") or "nginx", "-c", str(conf), "-e", str(folder / "error.log")])
    while not ((folder / "pid").exists() and (folder / "upstream").exists()):
        if server.poll() is not None or upstream.poll() is not None:
            raise OSError((folder / "error.log").read_text())
        time.sleep(0.02)
    return [server, upstream]


def ask(folder: Path) -> dict[str, Any]:
    """Ask again and again, and return what the client and the server's log measured."""
    think_s = 0.0
    connection = http.client.HTTPConnection(SERVER, PORT)
    for _ in range(REQUESTS):
        began_s = time.monotonic()
        time.sleep(THINK_S)
        think_s += time.monotonic() - began_s
        connection.request("GET", "/")
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise OSError(answer.status)
        answer.read()
    connection.close()
    return {"exchanges": REQUESTS, "work_s": work_s(folder), "think_s": think_s}


def work_s(folder: Path) -> float:
    """Return the sum of the log's times once all are written."""
    time.sleep(0.2)
    return sum(float(line) for line in (folder / "server.log").read_text().split())
