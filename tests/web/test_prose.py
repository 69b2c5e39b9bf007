"""Rule pages as HTML: no Markdown remains, and content is escaped."""

from __future__ import annotations

from tcpwin.limits import all_rules
from tcpwin.limits.document import sections
from tcpwin.render import line_markup, page_markup


def test_lines_are_joined_and_code_is_marked() -> None:
    assert (
        page_markup("at least\n`stall_ns` of\nit.\n\nMore.")
        == "<p>at least <code>stall_ns</code> of it.</p><p>More.</p>"
    )


def test_markup_is_text() -> None:
    assert page_markup("a <b> & `<i>` **<u>**") == (
        "<p>a &lt;b&gt; &amp; <code>&lt;i&gt;</code> <strong>&lt;u&gt;</strong></p>"
    )


def test_a_table_has_a_head() -> None:
    found = page_markup("| a | b |\n|---|---|\n| 1 | `2` |")
    assert '<thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>' in found
    assert "<tbody><tr><td>1</td><td><code>2</code></td></tr></tbody>" in found


def test_no_rule_shows_its_markdown() -> None:
    for rule in all_rules().values():
        for heading, text in sections(rule.page).items():
            shown = page_markup(text)
            assert not [mark for mark in ("`", "**", "|--") if mark in shown], (rule.code, heading)


def test_a_line_of_advice_keeps_its_code_and_nothing_else() -> None:
    assert line_markup("Ask `ss -tmi` <b>") == "Ask <code>ss -tmi</code> &lt;b&gt;"
