"""Figures and their options, and the messages that refuse invalid requests."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import plotly.io
import pytest
from cases import all_cases
from live import HANG_S
from report.figures.drawn import BUNDLE, MANY_SHORT, NAMES, SLOW_READER, STALL, analyzed, connection, drawn
from report.figures.test_still import OPTIONS

import tcpwin
from tcpwin import figures

PACKAGE = Path(figures.__file__).parent / "kinds"


def test_every_module_is_a_figure() -> None:
    modules = {path.stem.replace("_", "-") for path in PACKAGE.glob("*.py") if not path.stem.startswith("_")}
    assert modules == set(NAMES)


def test_names_by_scope() -> None:
    assert set(figures.names("connection")) == {
        "window",
        "path",
        "time-sequence",
        "throughput",
        "rtt",
        "budget",
        "socket-memory",
        "counters",
        "exchanges",
        "messages",
        "reference-runs",
        "reference-window",
        "reference-throughput",
    }
    assert set(figures.names("analysis")) == {"overview", "socket-distribution"}
    assert set(NAMES) == {*figures.names("connection"), *figures.names("analysis")}


@all_cases("name", NAMES)
def test_every_figure_says_what_it_is(name: str) -> None:
    kind = figures.get(name)
    assert kind.name == name
    assert len(kind.title) <= 40
    assert kind.summary.endswith((".", ":"))
    assert len(kind.page) > 300


def test_an_unknown_figure_is_refused_with_the_known_names() -> None:
    with pytest.raises(KeyError, match="unknown figure windows: choose one of overview, window"):
        figures.draw("windows", connection(SLOW_READER))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"direction": "a"}, "direction is a_to_b or b_to_a, not a"),
        ({"theme": "blue"}, "unknown theme blue"),
        ({"points": 3}, "points are from 16 to 20,000"),
        ({"start_ns": 5, "end_ns": 5}, "the span ends before it begins"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        figures.draw("window", connection(SLOW_READER), **options)  # type: ignore[arg-type]


def test_a_figure_of_one_connection_asks_which_of_several() -> None:
    with pytest.raises(ValueError, match="shows one connection"):
        figures.draw("window", analyzed(MANY_SHORT))


def test_the_only_connection_and_the_whole_analysis_stand_for_each_other() -> None:
    whole = analyzed(SLOW_READER)
    assert figures.draw("window", whole) == figures.draw("window", whole.connections[0])
    assert figures.draw("overview", whole) == figures.draw("overview", whole.connections[0])


def test_no_other_object_is_drawn() -> None:
    with pytest.raises(TypeError, match="a Connection or an Analysis, not a str"):
        figures.draw("window", "capture.pcap")  # type: ignore[arg-type]


def test_the_busier_direction_is_drawn_where_none_is_named() -> None:
    of = connection(SLOW_READER)
    assert of.b_to_a.payload_bytes > of.a_to_b.payload_bytes
    assert drawn("window", SLOW_READER).layout.meta["direction"] == "b_to_a"
    assert figures.draw("window", of, direction="a_to_b").layout.meta["direction"] == "a_to_b"


def test_a_timeline_shares_one_time_axis() -> None:
    of = connection(BUNDLE)
    figure = figures.timeline(of)
    assert list(figure.layout.meta["figures"]) == ["window", "budget", "throughput", "rtt", "socket-memory", "counters"]
    assert {each.xaxis for each in figure.data} == {None}
    assert len({each.yaxis for each in figure.data}) > len(figure.layout.meta["figures"])
    domains = [axis.domain for axis in figure.select_yaxes() if axis.visible is not False]
    assert len(domains) == 6
    assert all(low < high for low, high in domains)
    assert all(below[1] < above[0] for above, below in pairwise(domains))


def test_a_timeline_leaves_out_what_has_nothing_to_show() -> None:
    figure = figures.timeline(connection(SLOW_READER))
    assert list(figure.layout.meta["figures"]) == ["window", "budget", "throughput", "rtt"]
    with pytest.raises(ValueError, match="figure messages has no time axis to share"):
        figures.timeline(connection(SLOW_READER), ["window", "messages"])


def test_the_same_name_has_one_entry_in_the_legend() -> None:
    figure = figures.timeline(connection(SLOW_READER), ["window", "time-sequence"])
    shown = [each.name for each in figure.data if each.showlegend]
    assert len(shown) == len(set(shown))
    assert "window closed" in shown
    assert sum(each.name == "window closed" for each in figure.data) == 2


def test_the_page_has_a_legend_over_each_panel_and_other_media_one_below() -> None:
    plain = figures.plain_timeline(connection(SLOW_READER), **OPTIONS)
    layout = plain["layout"]
    tops = {layout[key]["domain"][1] for key in layout if key.startswith("yaxis")}
    legends = {each["legend"] for each in plain["data"]}
    assert len(legends) == len(layout["meta"]["figures"])
    assert {layout[name]["y"] for name in legends} == tops
    below = figures.gather_legends(plain)
    assert {each.get("legend") for each in below["data"]} == {None}
    shown = [each["legendgroup"] for each in below["data"] if each["showlegend"]]
    assert sorted(shown) == sorted({each["legendgroup"] for each in plain["data"]})
    assert below["layout"]["height"] == layout["height"] + below["layout"]["meta"]["legend_height"]


def test_a_timeline_marks_when_it_cost_time() -> None:
    of = connection(STALL)
    evidence = of.verdict.about.evidence
    (mark,) = figures.plain_timeline(of, **OPTIONS)["layout"]["shapes"]
    assert (mark["x0"], mark["x1"]) == tuple(
        (each - of.start_ns) / 1e9 for each in (evidence.start_ns, evidence.end_ns)
    )
    assert "shapes" not in figures.plain_timeline(of, **{**OPTIONS, "direction": "a_to_b"})["layout"]


def test_a_direction_that_only_acknowledges_has_no_band() -> None:
    plain = figures.plain("budget", connection(STALL), **OPTIONS)
    assert {int(base) for each in plain["data"] for base in each["base"]} == {1}
    assert all(each["meta"]["words"] for each in plain["data"])
    # The other's is below, whichever is requested.
    other = figures.plain("budget", connection(STALL), **{**OPTIONS, "direction": "a_to_b"})
    assert {int(base) for each in other["data"] for base in each["base"]} == {0}
    assert [each["name"] for each in other["data"]] == [each["name"] for each in plain["data"]]
    low, high = other["layout"]["yaxis2"]["range"]
    assert low < 0 < high < 1.4


def test_connections_and_analyses_are_drawn_by_their_own_method() -> None:
    analysis = tcpwin.analyze(SLOW_READER)
    assert analysis.connections[0].figure("rtt") == drawn("rtt", SLOW_READER)
    assert analysis.worst(1)[0].figure() == drawn("window", SLOW_READER)
    assert analysis.figure() == drawn("overview", SLOW_READER)
    assert analysis.connections[0].figure("timeline") == figures.timeline(connection(SLOW_READER))


def test_a_notebook_shows_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plotly.io.renderers, "default", "plotly_mimetype")
    bundle = drawn("window", SLOW_READER)._repr_mimebundle_()
    assert bundle["application/vnd.plotly.v1+json"]["data"][0]["name"]


def test_nothing_of_figures_is_loaded_before_one_is_drawn() -> None:
    code = f"""if True:
        import sys, tcpwin
        analysis = tcpwin.analyze({str(SLOW_READER)!r})
        assert "plotly" not in sys.modules and "numpy" not in sys.modules
        assert not [name for name in sys.modules if name.startswith("tcpwin.figures")]
        analysis.connections[0].figure("window")
        assert "plotly" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_S)
