"""Settings as code: `tcpwin.toml` and `[tool.tcpwin]`, searched upwards; the command line takes precedence."""

import json
from pathlib import Path

import pytest
from cli.command import KEEP_ALIVE, SLOW_READER, refused, tcpwin


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to the folder of a project and return it."""
    (tmp_path / "below" / "there").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "below" / "there")
    return tmp_path


def codes(*arguments: object) -> tuple[int, set[str]]:
    done = tcpwin("check", SLOW_READER, "--format", "json", *arguments)
    assert done.stderr == b"", done.stderr
    return done.returncode, {each["code"] for each in json.loads(done.stdout)["findings"]}


def test_without_a_file_nothing_changes(project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "tcpwin-user"\n')
    status, found = codes()
    assert (status, found >= {"TW201", "TW202"}) == (1, True)


@pytest.mark.parametrize("name", ["tcpwin.toml", "pyproject.toml"])
def test_rules_severity_and_thresholds(project: Path, name: str) -> None:
    text = '[check]\nselect = ["TW201"]\nfail-on = "never"\n'
    (project / name).write_text(text if name == "tcpwin.toml" else text.replace("[check]", "[tool.tcpwin.check]"))
    assert codes() == (0, {"TW201"})
    # The command line replaces only this setting.
    assert codes("--select", "TW202") == (0, {"TW202"})
    assert codes("--fail-on", "warning") == (1, {"TW201"})


def test_thresholds_with_and_without_quotes(project: Path) -> None:
    from tcpwin.cli.rules import find_rule

    rule = find_rule("TW201")
    name, threshold = next(each for each in rule.thresholds.items() if each[1].unit == "ns")
    assert threshold.unit == "ns"
    for line in (f'TW201.{name} = "1h"', f'"TW201.{name}" = "1h"', f'zero-window-stall.{name} = "1h"'):
        (project / "tcpwin.toml").write_text(f'[check]\nselect = ["TW201"]\n[check.threshold]\n{line}\n')
        assert codes() == (0, set()), line


def test_a_filter(project: Path) -> None:
    (project / "tcpwin.toml").write_text('[check]\nfilter = "port 9"\n')
    assert "none was selected: filter 'port 9'" in refused("check", SLOW_READER, status=3)
    assert codes("--filter", "tcp")[0] == 1


def test_the_nearest_file_is_taken_whole(project: Path) -> None:
    (project / "tcpwin.toml").write_text('[check]\nselect = ["TW201"]\n')
    (project / "below" / "pyproject.toml").write_text("[tool.other]\n")
    (project / "below" / "there" / "pyproject.toml").write_text('[tool.tcpwin.check]\nfail-on = "never"\n')
    status, found = codes()
    assert (status, "TW202" in found) == (0, True)


def test_a_file_by_its_name(project: Path) -> None:
    (project / "tcpwin.toml").write_text('[check]\nselect = ["TW201"]\n')
    other = project / "other.toml"
    other.write_text('[check]\nselect = ["TW202"]\nfail-on = "never"\n')
    done = tcpwin("--config", other, "check", SLOW_READER, "--format", "json")
    assert (done.returncode, {each["code"] for each in json.loads(done.stdout)["findings"]}) == (0, {"TW202"})
    assert "--config goes with check and compare" in refused("--config", other, "rules", status=2)


def test_compare_fails_by_its_budget(project: Path) -> None:
    assert tcpwin("compare", KEEP_ALIVE, SLOW_READER).returncode == 0
    (project / "tcpwin.toml").write_text('[compare]\ntolerance = "50%"\nfail-on = "worse"\n')
    assert tcpwin("compare", KEEP_ALIVE, SLOW_READER).returncode == 1
    assert tcpwin("compare", KEEP_ALIVE, SLOW_READER, "--fail-on", "never").returncode == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[check\n", "is not valid TOML"),
        ("[chekc]\n", "unknown table 'chekc': choose one of check, compare"),
        ("check = 1\n", "check is not a table"),
        (
            "[check]\nselekt = []\n",
            "check.selekt is not a setting: choose one of fail-on, filter, baseline, select, ignore, threshold",
        ),
        ('[check]\nselect = "TW201"\n', "check.select is not a list"),
        ("[check]\nselect = [201]\n", "check.select is not a quoted string"),
        ('[check]\nselect = ["TW999"]\n', "TW999"),
        ("[check]\nfail-on = 1\n", "check.fail-on is not a quoted string"),
        ('[check]\nfail-on = "often"\n', "'often' is not one of"),
        ("[check]\nthreshold = 1\n", "check.threshold is not a table"),
        ("[check.threshold]\nTW201.stall_ns = []\n", "is not an amount"),
        ('[check.threshold]\nTW201.nonsense = "1s"\n', "has no threshold 'nonsense'"),
        ('[compare]\nthreshold = "1"\n', "compare.threshold is not a setting: choose one of fail-on, tolerance"),
        ('[compare]\ntolerance = "much"\n', "'much' is not a share"),
    ],
)
def test_a_wrong_setting_is_wrong_usage(project: Path, text: str, words: str) -> None:
    (project / "tcpwin.toml").write_text(text)
    command = ("compare", KEEP_ALIVE, KEEP_ALIVE) if "compare]" in text else ("check", KEEP_ALIVE)
    assert words in refused(*command, status=2)
    # Commands without settings are unaffected.
    assert tcpwin("rules").returncode == 0


def test_invalid_settings_files(project: Path) -> None:
    assert "No such file" in refused("--config", project / "none.toml", "check", KEEP_ALIVE, status=2)
    (project / "pyproject.toml").write_text("[tool.other]\n")
    said = refused("--config", project / "pyproject.toml", "check", KEEP_ALIVE, status=2)
    assert "has no table [tool.tcpwin]" in said
