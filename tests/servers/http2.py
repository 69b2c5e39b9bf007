"""HTTP/2 over nginx with a slow upstream: many streams at once on one connection."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from servers import nginx
from servers.network import PORT, SERVER

STREAMS, REQUESTS = 20, 200


def start(folder: Path) -> list[subprocess.Popen[Any]]:
    """Run nginx with a certificate made for this run."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={SERVER}"]
    subprocess.run([*make, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return nginx.start(folder, " ssl http2", f"ssl_certificate {certificate}; ssl_certificate_key {key};")


def ask(folder: Path) -> dict[str, Any]:
    """Ask for many answers at once by curl, on one connection."""
    words = ["curl", "-sS", "-k", "--http2", "-Z", "--parallel-max", str(STREAMS), "-o", "/dev/null"]
    subprocess.run([*words, f"https://{SERVER}:{PORT}/[1-{REQUESTS}]"], check=True)
    return {"work_s": nginx.work_s(folder)}
