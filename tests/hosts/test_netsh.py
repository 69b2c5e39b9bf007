"""netsh and Get-NetTCPSetting: complete samples compared with the texts, and the values of each level."""

from __future__ import annotations

import pytest
from cases import all_cases
from hosts.truth_files import read, read_text
from hypothesis import given
from hypothesis import strategies as st
from reference import ABSENT, ROOT

from tcpwin.hosts import SnapshotFile
from tcpwin.hosts.windows_host import Autotuning, WindowsSample, autotuning

WINDOWS_10 = {
    "Receive-Side Scaling State": "enabled",
    "Receive Window Auto-Tuning Level": "normal",
    "Add-On Congestion Control Provider": "default",
    "ECN Capability": "disabled",
    "RFC 1323 Timestamps": "disabled",
    "Initial RTO": "1000",
    "Receive Segment Coalescing State": "enabled",
    "Non Sack Rtt Resiliency": "disabled",
    "Max SYN Retransmissions": "4",
    "Fast Open": "enabled",
    "Fast Open Fallback": "enabled",
    "HyStart": "enabled",
    "Pacing Profile": "off",
}
DISABLED = {**WINDOWS_10, "Receive Window Auto-Tuning Level": "disabled"}
SEED = ROOT.parent / "shared" / "seeds" / "windows-tcp-window.txt"


def test_windows_10_with_a_remark_behind_the_level() -> None:
    samples, unknown = read("netsh", "windows-10-normal.txt")
    assert samples == [WindowsSample(None, 6, "normal", WINDOWS_10)]
    assert unknown == []


def test_windows_10_disabled_with_the_command_that_did_it() -> None:
    samples, unknown = read("netsh", "windows-10-disabled.txt")
    assert samples == [WindowsSample(None, 10, "disabled", DISABLED)]
    assert unknown == []


def test_windows_7_with_its_own_rows_and_the_note_on_heuristics() -> None:
    samples, unknown = read("netsh", "windows-7-heuristics.txt")
    values = {
        "Receive-Side Scaling State": "enabled",
        "Chimney Offload State": "automatic",
        "NetDMA State": "enabled",
        "Direct Cache Acess (DCA)": "disabled",
        "Receive Window Auto-Tuning Level": "highlyrestricted",
        "Add-On Congestion Control Provider": "none",
        "ECN Capability": "disabled",
        "RFC 1323 Timestamps": "disabled",
    }
    assert samples == [WindowsSample(None, 5, "highlyrestricted", values)]
    assert unknown == []


def test_labels_in_german_stay_and_the_level_is_the_row_before_the_provider() -> None:
    samples, unknown = read("netsh", "german-disabled.txt")
    values = {
        "Zustand der empfangsseitigen Skalierung": "enabled",
        "Autom. Abstimmungsgrad Empfangsfenster": "disabled",
        'Add-On "Überlastungssteuerungsanbieter"': "default",
        "ECN-Funktion": "disabled",
        "RFC 1323-Zeitstempel": "disabled",
    }
    assert samples == [WindowsSample(None, 5, "disabled", values)]
    assert unknown == []


def test_a_table_that_lost_its_rule() -> None:
    samples, unknown = read("netsh", "without-a-rule.txt")
    values = {
        "Receive-Side Scaling State": "enabled",
        "Chimney Offload State": "disabled",
        "Receive Window Auto-Tuning Level": "restricted",
        "Add-On Congestion Control Provider": "none",
    }
    assert samples == [WindowsSample(None, 4, "restricted", values)]
    assert unknown == []


def test_profiles_of_powershell_and_a_policy_that_wins() -> None:
    samples, unknown = read("netsh", "get-nettcpsetting.txt")
    names = (
        *("SettingName", "MinRto(ms)", "InitialCongestionWindow(MSS)", "CongestionProvider"),
        *("AutoTuningLevelLocal", "AutoTuningLevelGroupPolicy", "AutoTuningLevelEffective"),
    )
    automatic = dict(zip(names, ("Automatic", "", "", "", "", "", ""), strict=True))
    internet = dict(zip(names, ("Internet", "300", "10", "CUBIC", "Normal", "NotConfigured", "Local"), strict=True))
    custom = dict(
        zip(names, ("InternetCustom", "300", "10", "CUBIC", "Normal", "HighlyRestricted", "GroupPolicy"), strict=True)
    )
    assert samples == [
        WindowsSample(None, 3, None, automatic, "Automatic"),
        WindowsSample(None, 11, "normal", internet, "Internet"),
        WindowsSample(None, 19, "highlyrestricted", custom, "InternetCustom"),
    ]
    assert unknown == []


def test_stamps_begin_new_samples() -> None:
    row = "Receive Window Auto-Tuning Level : normal\nECN Capability : disabled\n"
    samples, _ = read_text("netsh", f"### 1795288970\n{row}### 1795288971\n{row}")
    values = {"Receive Window Auto-Tuning Level": "normal", "ECN Capability": "disabled"}
    assert samples == [
        WindowsSample(1795288970_000_000_000, 2, "normal", values),
        WindowsSample(1795288971_000_000_000, 5, "normal", values),
    ]


def test_prose_is_not_a_setting() -> None:
    text = "How to : set it\n\nECN Capability : disabled\nPlease : do\n\nAnd : more\n"
    samples, unknown = read_text("netsh", text)
    assert samples == [WindowsSample(None, 3, None, {"ECN Capability": "disabled", "Please": "do"})]
    assert unknown == [(1, "How to : set it"), (6, "And : more")]


def test_the_article_has_both_outputs() -> None:
    if not SEED.is_file():
        pytest.skip(ABSENT)
    samples = list(SnapshotFile(SEED, format="netsh"))
    assert samples == [WindowsSample(None, 29, "normal", WINDOWS_10), WindowsSample(None, 59, "disabled", DISABLED)]


@all_cases(
    ("level", "shift", "field", "initial_bytes", "largest_bytes"),
    [
        # techjourney: 256 with a factor of 8, 16,384 with a factor of 2, 65536 if disabled; 16 MB for normal.
        # Microsoft: 2, 4, 8, 14. The largest is 65,535 shifted.
        ("disabled", None, None, 65_536, 65_535),
        ("highlyrestricted", 2, 16_384, 65_536, 262_140),
        ("restricted", 4, None, None, 1_048_560),
        ("normal", 8, 256, 65_536, 16_776_960),
        ("experimental", 14, None, None, 1_073_725_440),
    ],
)
def test_effects_of_a_level(
    level: str, shift: int | None, field: int | None, initial_bytes: int | None, largest_bytes: int
) -> None:
    found = autotuning(level)
    assert found == Autotuning(level, shift, field, initial_bytes, largest_bytes, found.sources)
    stated = {name for name in ("shift", "window_field", "initial_window_bytes") if getattr(found, name) is not None}
    assert set(found.sources) == stated | {"shift", "largest_window_bytes"}
    assert all(found.sources.values())


def test_the_page_has_the_same_figures() -> None:
    page = (ROOT / "tcpwin" / "docs" / "hosts" / "netsh.md").read_text(encoding="utf8")
    rows = page.partition("| level | shift |")[2].partition("\n\n")[0].splitlines()[2:]
    said = [[cell.strip() for cell in line.strip("|").split("|")][:5] for line in rows]
    levels = [autotuning(level) for level, *_ in said]
    assert said == [
        [
            each.level,
            "no option in the SYN" if each.shift is None else str(each.shift),
            *("–" if number is None else f"{number:,}" for number in (each.window_field, each.initial_window_bytes)),
            f"{each.largest_window_bytes:,}",
        ]
        for each in levels
        if each is not None
    ]
    assert len(said) == 5


def test_levels_by_the_names_of_powershell() -> None:
    assert autotuning("Highly Restricted") == autotuning("HighlyRestricted") == autotuning("highlyrestricted")
    assert autotuning("on") is None
    assert WindowsSample(None, 1, None, {}).autotuning is None
    assert WindowsSample(None, 1, "normal", {}).autotuning == autotuning("normal")


@given(st.text(alphabet=st.sampled_from("aZ:-> *\n\r\té—0.enabledormS"), max_size=300))
def test_any_text_gives_samples_or_unknown_lines(text: str) -> None:
    # The first row ensures that there is a setting to read.
    samples, _ = read_text("netsh", f"ECN Capability : disabled\n{text}")
    assert samples[0].values["ECN Capability"] is not None
    assert all(isinstance(sample, WindowsSample) for sample in samples)
