"""Convert the Markdown of rule pages to HTML: paragraphs, tables, `code` and **emphasis**.

In: text with line breaks anywhere. Out: markup, in which everything else is escaped.
"""

import re

from markupsafe import Markup, escape

_CODE = re.compile(r"`([^`]+)`")
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
_RULE = re.compile(r"[-:| ]+")


def page_markup(text: str) -> Markup:
    """Convert a text whose paragraphs are separated by empty lines."""
    return Markup("").join(_block(block.splitlines()) for block in re.split(r"\n\s*\n", text.strip()) if block)


def _block(lines: list[str]) -> Markup:
    if all(line.startswith("|") for line in lines):
        return _table([[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if not _is_rule(line)])
    return Markup("<p>{}</p>").format(line_markup(" ".join(line.strip() for line in lines)))


def _is_rule(line: str) -> bool:
    return _RULE.fullmatch(line) is not None


def _table(rows: list[list[str]]) -> Markup:
    head, *body = rows
    lines = Markup("").join(Markup("<tr>{}</tr>").format(_cells(row, Markup("<td>{}</td>"))) for row in body)
    return Markup(
        '<div class="scroll" role="region" aria-label="Table" tabindex="0"><table><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(_cells(head, Markup('<th scope="col">{}</th>')), lines)


def _cells(row: list[str], form: Markup) -> Markup:
    return Markup("").join(form.format(line_markup(cell)) for cell in row)


def line_markup(text: str) -> Markup:
    """Convert a text within a paragraph."""
    # Escaping leaves backticks and asterisks as they are.
    marked = _CODE.sub(r"<code>\1</code>", str(escape(text)))
    return Markup(_STRONG.sub(r"<strong>\1</strong>", marked))
