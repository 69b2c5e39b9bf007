"""Start the service on a free port, as a process or in a thread of the test's process."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from live import until

from tcpwin_web import Settings, create_app
from tcpwin_web.listening import server_config

MakeServer = Callable[..., tuple[subprocess.Popen[str], str]]
Host = Callable[..., str]


@contextmanager
def hosted(data: Path, shown: Sequence[Path] = (), **settings: Any) -> Iterator[str]:
    """Run the service in a thread and yield its address. It starts in milliseconds, because nothing is imported
    again.
    """
    app = create_app(Settings(**{"data": data, "workers": 2, **settings}), shown)
    server = uvicorn.Server(server_config(app, "127.0.0.1", 0))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        assert server.started, app.state.service.failure
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        app.state.service.begin_to_end()
        server.should_exit = True
        thread.join()


def start_server(
    stack: ExitStack, data: Path, *arguments: Any, niceness: int = 0, files: int = 0, **environment: str
) -> tuple[subprocess.Popen[str], str]:
    """Start the real server; return its process and address. It ends with the stack.

    Args:
        arguments: captures to show, and options; without captures it would show the bundled ones.
        files: maximum number of open descriptors; 0: this process's limit.
    """
    nothing = data.with_name("nothing")
    nothing.mkdir(parents=True, exist_ok=True)
    program = Path(sys.executable).parent / "tcpwin-web"
    nice = ["nice", "-n", str(niceness)] if niceness else []
    limit = ["prlimit", f"--nofile={files}:{files}"] if files else []
    server = stack.enter_context(
        subprocess.Popen(
            [*nice, *limit, program, nothing, *arguments, "--port", "0", "--data", data, "--log-json"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
    )
    stack.callback(server.terminate)
    assert server.stderr is not None
    said = ""
    for line in server.stderr:
        said += line
        if found := re.search(r"http://[\d.:[\]]+:\d+", line):
            # Later output must not fill the pipe.
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server, found[0]
    pytest.fail(f"the server did not start: {said}")
