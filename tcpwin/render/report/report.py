"""What a report says, apart from its form: which findings and connections, in which order, and how many are left out.

In: an analysis. Out: Report, which the forms (HTML, Markdown, JSON) write down. It judges nothing itself.
"""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tcpwin.errors import ArgumentError
from tcpwin.limits import (
    Analysis,
    Connection,
    Finding,
    Findings,
    Rule,
    Summary,
    Verdict,
    all_rules,
    applicable_rules,
    judge_connection,
    problems,
    summarize,
)
from tcpwin.output import open_whole
from tcpwin.render.view.connection import ConnectionView, view_connection
from tcpwin.render.view.finding import FindingGroup, group_findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpwin.reference import Comparison

FORMS = ("html", "pdf", "json", "md")
THEMES = ("auto", "light", "dark")
_ENDINGS = {"html": "html", "htm": "html", "pdf": "pdf", "json": "json", "md": "md", "markdown": "md"}

CONNECTIONS_SHOWN = 10
"""Connections told in full where nothing else is asked for."""
SOUND_SHOWN = 3
"""Of them at most, where no rule found anything of note."""
FINDINGS_SHOWN = 20
"""Kinds of findings of which the worst is told in full; connections told in full have lists of their own besides."""
PRINTED_CONNECTIONS, PRINTED_FINDINGS = 3, 4
"""The same of a report on paper, which nobody searches: at most twelve pages."""


def form_of(path: str | Path | None) -> str:
    """The form that a file's name asks for; HTML where it has no ending.

    Raises:
        ArgumentError: no form has such an ending.
    """
    ending = Path(path or "").suffix.lower().removeprefix(".")
    if not ending:
        return "html"
    if ending not in _ENDINGS:
        raise ArgumentError(
            f"the name {path} says no form: let it end in one of {', '.join(_ENDINGS)}, or name the form"
        )
    return _ENDINGS[ending]


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody wrote beside a capture.

    Attributes:
        about: of what, in words, as ``connection 3, frame 12``; empty for the whole capture.
        by: who wrote it, as they called themselves; may be empty.
        time_ns: when, nanoseconds since the epoch.
    """

    text: str
    about: str = ""
    by: str = ""
    time_ns: int = 0


@dataclass(frozen=True)
class Report:
    """The content of a report, and the forms in which it can be had.

    Attributes:
        analysis: with what the hosts said, if anything.
        limit: most connections told in full.
        given: what rules found; that of all rules, `Analysis.findings`, where it is None.
        is_printed: it is for paper.
        notes: of people, in the order in which they stand in the report.
        chosen: numbers of the connections told in full, in place of the worst.
    """

    analysis: Analysis
    limit: int = CONNECTIONS_SHOWN
    given: Findings | None = None
    is_printed: bool = False
    notes: Sequence[Note] = ()
    chosen: Sequence[int] = ()
    _verdicts: dict[int, Verdict] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def findings(self) -> Findings:
        """What the rules found, the costliest first."""
        return self.analysis.findings if self.given is None else self.given

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """The rules that were asked."""
        return applicable_rules(self.analysis, all_rules().values())

    @cached_property
    def summary(self) -> Summary:
        """The paragraph, the verdict on the worst connection, and the findings that cost most."""
        return summarize(self.analysis, self.findings)

    def verdict(self, id: int) -> Verdict:
        """What limited a connection, by these findings."""
        if id not in self._verdicts:
            connection = self.analysis.connections[id]
            is_own = self.given is None
            self._verdicts[id] = connection.verdict if is_own else judge_connection(connection, self.findings.of(id))
        return self._verdicts[id]

    @property
    def printed(self) -> Report:
        """The same for paper: fewer connections, and of each what is looked at first."""
        return replace(self, limit=min(self.limit, PRINTED_CONNECTIONS), is_printed=True)

    @cached_property
    def finding_groups(self) -> Sequence[FindingGroup]:
        """The costliest kinds of findings: of each, the worst is shown in full."""
        return group_findings(self.findings)[: PRINTED_FINDINGS if self.is_printed else FINDINGS_SHOWN]

    @cached_property
    def shown_findings(self) -> Sequence[Finding]:
        """Those told in full: the worst of each kind."""
        return [group.worst for group in self.finding_groups]

    @cached_property
    def findings_left(self) -> dict[str, int]:
        """How many findings of each rule are of no kind that is told, by code; rules with none are left out."""
        told: Counter[str] = Counter()
        for group in self.finding_groups:
            told[group.worst.code] += group.count
        left = {code: count - told[code] for code, count in self.findings.counts.items()}
        return {code: count for code, count in left.items() if count}

    @cached_property
    def shown_ids(self) -> Sequence[int]:
        """Numbers of the connections told in full: those with a problem, the worst first, then those with findings.

        Where no rule found anything of note, those with most data.
        """
        if self.chosen:
            return [self.analysis.connections[id].id for id in self.chosen[: self.limit]]
        slowed = problems(self.analysis, self.findings)
        noted = [each.connection for each in self.findings if each.connection is not None and _is_of_note(each)]
        ids = list(dict.fromkeys([*slowed, *noted]))[: self.limit]
        if not ids:
            ids = largest(self.analysis, min(self.limit, SOUND_SHOWN))
        return ids

    @cached_property
    def connections(self) -> Sequence[ConnectionView]:
        """The connections told in full. Reads the source again, once for all of them."""
        if self.shown_ids:
            self.analysis.follow(self.shown_ids)
        return [
            view_connection(Connection(self.analysis, id), self.verdict(id), self.findings.of(id))
            for id in self.shown_ids
        ]

    @cached_property
    def comparisons(self) -> Sequence[Comparison]:
        """Each of these connections beside the references that are near it, in the same order."""
        from tcpwin.reference import compare

        return [compare(each.connection, verdict=each.verdict) for each in self.connections]

    def html(self, *, theme: str = "auto") -> str:
        """The report as one page that needs no network; `theme` is ``auto``, ``light`` or ``dark``.

        Raises:
            ArgumentError: there is no such theme.
            OutputError: jinja2 or tsdownsample is not installed.
            SourceError: the source, read again for the connections told in full, changed, or could be read only once.
        """
        from tcpwin.render.report.html_page import render_page

        return render_page(self, theme=theme)

    def pdf(self) -> bytes:
        """The page as PDF, printed by the system's Chromium or Chrome; in light colours, of at most twelve pages.

        At most three connections are told in full.

        Raises:
            OutputError: there is none, or it failed; or as `html` does.
        """
        from tcpwin.render.report.html_page import render_page
        from tcpwin.render.report.pdf import find_browser, print_page

        find_browser()
        return print_page(render_page(self.printed))

    def markdown(self) -> str:
        """The report as Markdown: for a ticket."""
        from tcpwin.render.report.markdown_form import render_markdown

        return "".join(f"{line}\n" for line in render_markdown(self))

    def json(self) -> str:
        """The report as the JSON document ``tcpwin/report/2``."""
        file = io.StringIO()
        self.write_json(file)
        return file.getvalue()

    def write_json(self, file: IO[str]) -> None:
        """Write that document piece by piece."""
        from tcpwin.render.report.document import write_document

        write_document(self, file)

    def write(self, path: str | Path, *, form: str | None = None, theme: str = "auto") -> None:
        """Write the report to a file.

        Args:
            form: one of `FORMS`; what the file's name says where it is None.
            theme: of HTML.

        Raises:
            ArgumentError: there is no such form or theme.
            OutputError: the file cannot be written, or the form cannot be had: see `html` and `pdf`.
        """
        chosen = form_of(path) if form is None else form
        if chosen not in FORMS:
            raise ArgumentError(f"no form is called {chosen}: there are {', '.join(FORMS)}")
        # What the report says is made before the file is opened: a failure leaves what was there.
        content: str | bytes
        if chosen == "pdf":
            content = self.pdf()
        elif chosen == "json":
            # A document of all connections may be large: it is written piece by piece.
            _, content = self.comparisons, ""
        else:
            content = self.html(theme=theme) if chosen == "html" else self.markdown()
        with open_whole(path, is_binary=isinstance(content, bytes)) as file:
            if chosen == "json":
                self.write_json(file)
            else:
                file.write(content)

    def __repr__(self) -> str:
        return f"<Report of {self.analysis.name}: {len(self.analysis)} connections>"


def _is_of_note(finding: Finding) -> bool:
    return bool(finding.cost_ns or finding.lost_bps or finding.severity > 1)


def largest(analysis: Analysis, count: int) -> list[int]:
    """Numbers of the connections with most data, the largest first; of those with any."""
    if not len(analysis) or not count:
        return []
    import numpy as np

    data = sum(np.ma.filled(analysis.connections.column(f"{name}.unique_bytes"), 0) for name in ("a_to_b", "b_to_a"))
    order = np.argsort(-np.asarray(data), kind="stable")[:count]
    return [int(id) for id in order if np.asarray(data)[id]]
