"""The content of a report in every form: which findings and connections, in which order, and how many are omitted.

In: an analysis. Out: Report, which the forms (HTML, Markdown, JSON) write. It judges nothing itself.
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
from tcpwin.render.report.digest import Digest, digest_of, seal
from tcpwin.render.view.connection import ConnectionView, view_connection
from tcpwin.render.view.finding import FindingGroup, group_findings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpwin.reference import Comparison
    from tcpwin.render.report.references import TwinView

FORMS = ("html", "pdf", "json", "md")
THEMES = ("auto", "light", "dark")
_ENDINGS = {"html": "html", "htm": "html", "pdf": "pdf", "json": "json", "md": "md", "markdown": "md"}

CONNECTIONS_SHOWN = 10
"""Connections shown in full by default."""
SOUND_SHOWN = 3
"""Maximum number of connections shown in full if no rule found a problem."""
FINDINGS_SHOWN = 20
"""Kinds of findings whose worst is shown in full; connections shown in full list all of theirs."""
PRINTED_CONNECTIONS, PRINTED_FINDINGS = 3, 4
"""The same limits for paper, which cannot be searched: at most twelve pages."""


def form_of(path: str | Path | None) -> str:
    """Return the form implied by a file's extension; HTML without one.

    Raises:
        ArgumentError: no form has this extension.
    """
    ending = Path(path or "").suffix.lower().removeprefix(".")
    if not ending:
        return "html"
    if ending not in _ENDINGS:
        raise ArgumentError(f"{path} has no known extension: use one of {', '.join(_ENDINGS)}, or name the form")
    return _ENDINGS[ending]


@dataclass(frozen=True, slots=True)
class Note:
    """A note that a person wrote about a capture.

    Attributes:
        about: its subject, such as ``connection 3, frame 12``; empty for the whole capture.
        by: the author's chosen name; may be empty.
        time_ns: time of writing, nanoseconds since the epoch.
    """

    text: str
    about: str = ""
    by: str = ""
    time_ns: int = 0


@dataclass(frozen=True)
class Report:
    """The content of a report, and its forms.

    Attributes:
        analysis: the analysis, with any host snapshots.
        limit: maximum number of connections shown in full.
        given: the findings to report; if None, `Analysis.findings`, those of all rules.
        is_printed: whether it is for paper.
        notes: notes that people wrote, in the order of the report.
        chosen: numbers of the connections to show in full instead of the worst.
        twins: runs like connections in the lab's kernel, by the connections' numbers.
    """

    analysis: Analysis
    limit: int = CONNECTIONS_SHOWN
    given: Findings | None = None
    is_printed: bool = False
    notes: Sequence[Note] = ()
    chosen: Sequence[int] = ()
    twins: Mapping[int, TwinView] = field(default_factory=dict)
    _verdicts: dict[int, Verdict] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def digest(self) -> Digest:
        """Digests of the capture and of the results."""
        return digest_of(self.analysis)

    @cached_property
    def findings(self) -> Findings:
        """The findings, costliest first."""
        return self.analysis.findings if self.given is None else self.given

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """The rules that were checked."""
        return applicable_rules(self.analysis, all_rules().values())

    @cached_property
    def summary(self) -> Summary:
        """The paragraph, the verdict on the worst connection, and the findings that cost most."""
        return summarize(self.analysis, self.findings)

    def verdict(self, id: int) -> Verdict:
        """Return the verdict on a connection, judged by these findings."""
        if id not in self._verdicts:
            connection = self.analysis.connections[id]
            is_own = self.given is None
            self._verdicts[id] = connection.verdict if is_own else judge_connection(connection, self.findings.of(id))
        return self._verdicts[id]

    @property
    def printed(self) -> Report:
        """The same report for paper: fewer connections, and only the essentials of each."""
        return replace(self, limit=min(self.limit, PRINTED_CONNECTIONS), is_printed=True)

    @cached_property
    def finding_groups(self) -> Sequence[FindingGroup]:
        """The costliest kinds of findings; the worst of each is shown in full."""
        return group_findings(self.findings)[: PRINTED_FINDINGS if self.is_printed else FINDINGS_SHOWN]

    @cached_property
    def shown_findings(self) -> Sequence[Finding]:
        """The findings shown in full: the worst of each kind."""
        return [group.worst for group in self.finding_groups]

    @cached_property
    def findings_left(self) -> dict[str, int]:
        """Number of findings by rule code whose kind is not shown; without zeros."""
        counts: Counter[str] = Counter()
        for group in self.finding_groups:
            counts[group.worst.code] += group.count
        left = {code: count - counts[code] for code, count in self.findings.counts.items()}
        return {code: count for code, count in left.items() if count}

    @cached_property
    def shown_ids(self) -> Sequence[int]:
        """Numbers of the connections shown in full: those with a problem, worst first, then those with findings.

        If no rule found a problem, those with most data.
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
        """The connections shown in full. Reads the source again, once for all of them."""
        if self.shown_ids:
            self.analysis.follow(self.shown_ids)
        return [
            view_connection(Connection(self.analysis, id), self.verdict(id), self.findings.of(id))
            for id in self.shown_ids
        ]

    @cached_property
    def comparisons(self) -> Sequence[Comparison]:
        """The comparison of each of these connections with its nearest references, in the same order."""
        from tcpwin.reference import compare

        return [compare(each.connection, verdict=each.verdict) for each in self.connections]

    def html(self, *, theme: str = "auto") -> str:
        """Render the report as one page that needs no network; `theme` is ``auto``, ``light`` or ``dark``.

        Raises:
            ArgumentError: the theme is unknown.
            OutputError: jinja2 or tsdownsample is not installed.
            SourceError: the source changed since it was read, or could be read only once.
        """
        from tcpwin.render.report.html_page import render_page

        return render_page(self, theme=theme)

    def pdf(self) -> bytes:
        """Print the page as PDF with the system's Chromium or Chrome, in light colours, on at most twelve pages.

        At most three connections are shown in full.

        Raises:
            OutputError: no browser was found, or it failed; or as `html` does.
        """
        from tcpwin.render.report.html_page import render_page
        from tcpwin.render.report.pdf import find_browser, print_page

        find_browser()
        return print_page(render_page(self.printed))

    def markdown(self) -> str:
        """Render the report as Markdown for a ticket."""
        from tcpwin.render.report.markdown_form import render_markdown

        return seal("".join(f"{line}\n" for line in render_markdown(self)).encode(), ".").decode()

    def json(self) -> str:
        """Return the report as the JSON document ``tcpwin/report/2``."""
        file = io.StringIO()
        self.write_json(file)
        return file.getvalue()

    def write_json(self, file: IO[str]) -> None:
        """Write the JSON document piece by piece."""
        from tcpwin.render.report.document import write_document

        write_document(self, file)

    def write(self, path: str | Path, *, form: str | None = None, theme: str = "auto") -> None:
        """Write the report to a file.

        Args:
            form: one of `FORMS`; implied by the file's name if None.
            theme: the HTML's theme.

        Raises:
            ArgumentError: the form or theme is unknown.
            OutputError: the file cannot be written, or the form is unavailable: see `html` and `pdf`.
        """
        chosen = form_of(path) if form is None else form
        if chosen not in FORMS:
            raise ArgumentError(f"unknown form {chosen}: choose one of {', '.join(FORMS)}")
        # Render before opening the file: a failure leaves the existing file intact.
        content: str | bytes
        if chosen == "pdf":
            content = self.pdf()
        elif chosen == "json":
            # A document of all connections may be large, so it is streamed.
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
    """Return the numbers of the connections with most data, largest first, without empty ones."""
    if not len(analysis) or not count:
        return []
    import numpy as np

    data = sum(np.ma.filled(analysis.connections.column(f"{name}.unique_bytes"), 0) for name in ("a_to_b", "b_to_a"))
    order = np.argsort(-np.asarray(data), kind="stable")[:count]
    return [int(id) for id in order if np.asarray(data)[id]]
