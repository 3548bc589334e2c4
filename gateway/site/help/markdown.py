"""Markdown to HTML that keeps the Content-Security-Policy: no HTML of its own, no styles, no scripts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import escape
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

# Pictures by the name in `![…](picture:name)`: templates, which draw with the classes of the style sheets.
PICTURES = {"flow": "site/_flow.html"}
_NOT_IN_IDS = re.compile(r"[^\w-]+")
# The target of a link as written gives its address, or None where the text stays without a link.
Resolve = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    id: str
    text: str


@dataclass(slots=True)
class Section:
    """A heading, or the beginning of a document, with the text up to the next heading."""

    id: str
    heading: str
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.parts).split())


@dataclass(frozen=True, slots=True)
class Rendered:
    """The first heading is the title, which is in none of these."""

    html: str
    headings: tuple[Heading, ...]
    sections: tuple[Section, ...]


def render(source: str, resolve: Resolve) -> Rendered:
    """Raises: ValueError for a source that does not begin with its title."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    for name, rule in _RULES.items():
        parser.add_render_rule(name, rule)
    tokens = parser.parse(source)
    if [each.type for each in tokens[:1]] != ["heading_open"] or tokens[0].tag != "h1":
        raise ValueError(f"A document begins with its title, and this one with {source[:40]!r}.")
    title, rest = _text(tokens[1]), tokens[3:]
    _resolve_links(rest, resolve)
    _unwrap_pictures(rest)
    headings = _name_headings(rest)
    html = parser.renderer.render(rest, parser.options, {})
    return Rendered(html, tuple(headings), tuple(_sections(title, rest)))


def _resolve_links(tokens: Sequence[Token], resolve: Resolve) -> None:
    for token in tokens:
        # Alignment of columns would be a style attribute.
        token.attrs.pop("style", None)
        if token.children:
            token.children = list(_resolved(token.children, resolve))


def _resolved(children: Sequence[Token], resolve: Resolve) -> Iterator[Token]:
    is_link = False  # a link holds no other
    for child in children:
        if child.type == "link_open":
            target = resolve(str(child.attrGet("href")))
            is_link = target is not None
            child.attrs = {"href": target or ""}
        if is_link or child.type not in {"link_open", "link_close"}:
            yield child


def _unwrap_pictures(tokens: Sequence[Token]) -> None:
    """A picture is no part of a paragraph, which is around each image in Markdown."""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.type == "inline" and [child.type for child in token.children or ()] == ["image"]:
            before.hidden = after.hidden = True


def _name_headings(tokens: Sequence[Token]) -> list[Heading]:
    """Gives each heading an id that is unique in the document, and a link to itself."""
    found: list[Heading] = []
    taken: dict[str, int] = {}
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = _text(inline)
        name = heading_id(text)
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:
            name = f"{name}-{taken[name]}"
        token.attrSet("id", name)
        inline.children = [*(inline.children or ()), *_link_to(name, text)]
        found.append(Heading(int(token.tag[1]), name, text))
    return found


def heading_id(text: str) -> str:
    """As GitHub makes them, so that a link to a part of a file works in both places."""
    return _NOT_IN_IDS.sub("", text.strip().lower().replace(" ", "-"))


def _link_to(name: str, text: str) -> list[Token]:
    start, mark = Token("link_open", "a", 1), Token("text", "", 0, content="#")
    start.attrs = {"class": "doc-anchor", "href": f"#{name}", "aria-label": f"Link: {text}"}
    return [start, mark, Token("link_close", "a", -1)]


def _sections(title: str, tokens: Sequence[Token]) -> list[Section]:
    found = [Section("", title)]
    is_heading = False
    for token in tokens:
        if token.type == "heading_open":
            found.append(Section(str(token.attrGet("id")), ""))
            is_heading = True
        elif token.type == "inline" and is_heading:
            found[-1].heading, is_heading = token.content.replace("`", ""), False
        elif token.type == "inline":
            found[-1].parts.append(_text(token))
        elif token.type in {"fence", "code_block"}:
            found[-1].parts.append(token.content)
    return found


def _text(inline: Token) -> str:
    """The words of an inline token, without marks."""
    return "".join(
        " " if child.type in {"softbreak", "hardbreak"} else child.content for child in inline.children or ()
    )


def _code(self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: dict[str, int]) -> str:
    env["codes"] = env.get("codes", 0) + 1
    context = {"code": tokens[at].content.rstrip("\n"), "label": f"Example {env['codes']}"}
    return render_to_string("_code_block.html", context)


def _table(self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: dict[str, int]) -> str:
    # A wide table scrolls in its own frame, which a keyboard can reach.
    env["tables"] = env.get("tables", 0) + 1
    return f'<div class="doc-table" tabindex="0" role="region" aria-label="Table {env["tables"]}"><table>\n'


def _end_of_table(*_: object) -> str:
    return "</table></div>\n"


def _picture(self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Mapping[str, int]) -> str:
    scheme, _, name = str(tokens[at].attrGet("src")).partition(":")
    if scheme != "picture" or name not in PICTURES:
        raise ValueError(f"There is no picture {escape(name)!r}.")
    return render_to_string(PICTURES[name])


_RULES: Mapping[str, Callable[..., str]] = {
    "fence": _code,
    "code_block": _code,
    "image": _picture,
    "table_open": _table,
    "table_close": _end_of_table,
}
