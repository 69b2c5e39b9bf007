"""`tcpwin doctor` and `tcpwin --version --json`: installed, missing and broken features."""

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from cli.command import refused, tcpwin
from live import HANG_S
from spread import some_by_day

from tcpwin.cli import doctor
from tcpwin.cli.doctor import FEATURES
from tcpwin.render.wireshark.plugin import plugin_text

PACKAGES = Path(sysconfig.get_path("purelib"))
MAIN = "from tcpwin.cli import main; main()"


def told(done: subprocess.CompletedProcess[bytes]) -> dict[str, dict[str, object]]:
    """Return the features of a document by name."""
    return {each["name"]: each for each in json.loads(done.stdout)["features"]}


def test_version_as_json() -> None:
    for arguments in (["--version", "--json"], ["--json", "--version"]):
        done = tcpwin(*arguments)
        assert (done.returncode, done.stderr) == (0, b"")
        document = json.loads(done.stdout)
        assert (document["schema"], document["version"]) == ("tcpwin/version/1", version("tcpwin"))
        assert document["python"] == sys.version.split()[0]
        assert Path(document["location"], "_engine.pyi").is_file()
    assert "--json before a command goes with --version" in refused("--json", "rules", status=2)


def test_a_feature_is_called_as_the_extra_that_brings_it() -> None:
    extras = {requirement.partition("extra == ")[2].strip("'\"") for requirement in requires("tcpwin") or ()}
    assert extras - {"", "test", "dev"} <= {feature.name for feature in FEATURES}


def test_all_is_well_here() -> None:
    done = tcpwin("doctor", "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    document = json.loads(done.stdout)
    assert (document["schema"], document["is_well"], document["version"]) == (
        "tcpwin/doctor/1",
        True,
        version("tcpwin"),
    )
    found = told(done)
    assert list(found) == [feature.name for feature in FEATURES]
    assert f"cypcap {version('cypcap')}" in found["filter"]["found"]  # type: ignore[operator]
    assert all(
        each["reason"] is None and each["install"] is None for each in found.values() if each["state"] == "ready"
    )


def test_features_by_name() -> None:
    done = tcpwin("doctor", "captures", "tables")
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert [line.split()[:2] for line in lines[3:]] == [["ready", "captures"], ["ready", "tables"]]
    assert f"polars {version('polars')}" in lines[-1]
    assert "'nonsense' is not one of" in refused("doctor", "nonsense", status=2)


def test_every_extra_brings_a_feature() -> None:
    """Every missing feature names the extra that installs it, and every extra is named."""
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].keys() - {"dev", "test"}
    commands = " ".join(feature.install for feature in FEATURES)
    assert {extra for extra in extras if f"'tcpwin[{extra}]'" in commands} == extras


def test_packages_not_installed_are_missing(tmp_path: Path) -> None:
    # The same packages except three.
    for entry in PACKAGES.iterdir():
        if not entry.name.startswith(("cypcap", "polars", "tcpwin_web")):
            (tmp_path / entry.name).symlink_to(entry)
    root = Path(__file__).parents[2]
    code = f"import sys; sys.path += [{str(root)!r}, {str(tmp_path)!r}]; {MAIN}"

    def run(*arguments: str, command: str = "doctor") -> subprocess.CompletedProcess[bytes]:
        line = [sys.executable, "-S", "-c", code, command, *arguments]
        return subprocess.run(line, capture_output=True, timeout=HANG_S, check=False)

    done = run("--open", command="serve")
    assert (done.returncode, done.stderr.decode()) == (
        3,
        "tcpwin: the dashboard is the package tcpwin-web: pip install 'tcpwin[web]'\n",
    )
    done = run("filter", "--json")
    assert done.returncode in (0, 1), done.stderr
    filters = told(done)["filter"]
    assert (filters["state"], filters["reason"]) == ("missing", "cypcap not installed")
    assert filters["install"] == "pip install 'tcpwin[filter]'"
    done = run("tables", "scapy")
    assert done.returncode == 1
    assert b"polars not installed: pip install 'tcpwin[tables]'" in done.stdout


def test_packages_that_do_not_load_are_broken(tmp_path: Path) -> None:
    (tmp_path / "cypcap").mkdir()
    source = next(PACKAGES.glob("cypcap/_cypcap*.so"))
    # Half of a library, as after a full disk.
    half = source.read_bytes()[: source.stat().st_size // 2]
    (tmp_path / "cypcap" / source.name).write_bytes(half)
    (tmp_path / "cypcap" / "__init__.py").write_bytes((PACKAGES / "cypcap" / "__init__.py").read_bytes())
    done = tcpwin("doctor", "filter", "--json", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    filters = told(done)["filter"]
    assert filters["state"] == "broken"
    assert f"cypcap {version('cypcap')} does not load: " in str(filters["reason"])
    assert json.loads(done.stdout)["is_well"] is False


@pytest.mark.parametrize("name", some_by_day(["recording", "wireshark", "image", "pdf", "lab"]))
def test_programs_that_are_not_there(name: str, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "BROWSER_PATH"}
    done = tcpwin("doctor", name, "--json", env={**environment, "PATH": str(tmp_path)})
    feature = told(done)[name]
    assert (done.returncode, feature["state"]) == (1, "missing"), feature
    assert feature["reason"]


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's modules lie next to captures; the siblings start Python for Wireshark and in the lab."""
    seen = tmp_path / "seen"
    for name in ("polars", "tcpwin"):
        (tmp_path / f"{name}.py").write_text(f"open({str(seen)!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    assert doctor._import_failure("polars") is None
    command = re.search(r'^local COMMAND = "(.*)"$', plugin_text(), re.MULTILINE)
    assert command is not None
    words = [*shlex.split(command[1]), "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tcpwin")
    assert not seen.exists()
