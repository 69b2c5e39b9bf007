"""The container file: its packages and settings exist, it drops root, and its health check works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from reference import ROOT
from web.running import hosted

from tcpwin_web import Settings

TEXT = (ROOT / "web" / "Containerfile").read_text(encoding="utf8").replace("\\\n", " ")
LINES = [line.partition(" ") for line in TEXT.splitlines() if line and not line.startswith("#")]


def given(instruction: str) -> list[str]:
    """Return the arguments of an instruction in the last stage."""
    last = max(number for number, (name, _, _) in enumerate(LINES) if name == "FROM")
    return [rest.strip() for name, _, rest in LINES[last:] if name == instruction]


def test_it_runs_as_a_user_who_owns_the_data_alone() -> None:
    (user,) = given("USER")
    (data,) = given("VOLUME")
    assert user != "root"
    (made,) = given("RUN")
    assert re.search(rf"useradd .*\b{user}\b", made)
    assert f"install -d -o {user} -m 0700 {data}" in made


def test_its_settings_are_settings() -> None:
    (line,) = given("ENV")
    variables = dict(word.split("=", 1) for word in line.split())
    known = {f"TCPWIN_{name.upper()}" for name in Settings.model_fields}
    assert {name for name in variables if name.startswith("TCPWIN_")} <= known
    assert variables["TCPWIN_DATA"] == given("VOLUME")[0]
    assert variables["TCPWIN_PORT"] == given("EXPOSE")[0]
    # Without a token the service refuses such an address.
    assert variables["TCPWIN_HOST"] == "0.0.0.0"
    assert "TCPWIN_TOKEN" not in variables


def test_its_health_check_sees_a_service_and_sees_that_it_is_gone(tmp_path: Path) -> None:
    (line,) = given("HEALTHCHECK")
    command = json.loads(line.partition("CMD ")[2])
    assert command[0] == "python"

    def check(address: str) -> int:
        environment = {**os.environ, "TCPWIN_PORT": address.rpartition(":")[2]}
        # Its own timeout is too short for a loaded machine.
        patient = [part.replace("timeout=4", "timeout=600") for part in command[1:]]
        return subprocess.run([sys.executable, *patient], env=environment, capture_output=True, check=False).returncode

    with hosted(tmp_path / "data", token="correct horse battery") as address:
        assert check(address) == 0
    assert check(address) != 0


def test_what_it_is_not_made_of_is_left_out_of_its_context() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf8").splitlines()
    assert {".*", "**/target", "**/*.so"} <= set(ignored)
    assert not {"tcpwin", "web", "README.md", "LICENSE", "pyproject.toml"} & set(ignored)
