"""Each colour of a badge that a template names is one that the style sheet has: without it the badge is bare text."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STYLE = ROOT / "gateway/static/css/app.css"
# Of a name that is put together, such as `badge-{{ … }}`, only the parts in the template are read.
NAMED = re.compile(r"\bbadge-([a-z]+)\b")
DEFINED = re.compile(r"^\.badge-([a-z]+) \{", re.MULTILINE)


def unknown_colours(template: str, style: str) -> set[str]:
    """Pure: the colours that `template` names and `style` lacks."""
    return set(NAMED.findall(template)) - set(DEFINED.findall(style))


def test_templates_name_colours_that_exist() -> None:
    style = STYLE.read_text()
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in sorted((ROOT / "templates").rglob("*.html"))
        if (names := unknown_colours(path.read_text(), style))
    }
    assert not found


def test_a_colour_that_no_style_has_is_found() -> None:
    style = ".badge-good { color: green; }\n"
    assert unknown_colours('<span class="badge badge-good">', style) == set()
    assert unknown_colours('<span class="badge badge-danger">', style) == {"danger"}
