"""Documents become HTML that the Content-Security-Policy allows, whatever their Markdown holds."""

from __future__ import annotations

import re

import pytest

from gateway.site.help.markdown import Rendered, heading_id, render

pytestmark = pytest.mark.one_back_end


def rendered(text: str) -> Rendered:
    return render(f"# Title\n\n{text}\n", lambda target: None if target.startswith("../") else target)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a <b onclick='x()'>bold</b>",
        "[x](javascript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "![x](javascript:alert(1))",
        "```<script>\n</code></pre><script>alert(1)</script>\n```",
        "| a |\n|:-:|\n| <style>*{}</style> |",
        "## <script>alert(1)</script>",
        '[x](/docs "title\' onmouseover=alert(1)")',
    ],
)
def test_nothing_of_a_source_becomes_script_or_style(text: str) -> None:
    html = rendered(text).html
    tags = " ".join(re.findall(r"<[^>]*>", html))
    assert not re.search(r"<(script|style|img|b)\b|\sstyle=|\son\w+=|javascript:|data:", tags), html


def test_a_table_scrolls_by_itself_and_its_columns_have_no_style() -> None:
    html = rendered("| a | b |\n|---|--:|\n| 1 | 2 |").html
    assert '<div class="doc-table" tabindex="0" role="region" aria-label="Table 1"><table>' in html
    assert "<td>2</td>" in html
    assert "style" not in html


def test_headings_have_ids_and_lead_to_themselves() -> None:
    found = rendered("## One `tools/call`\n\n### Again\n\n## Again\n\n## Again")
    assert [(each.level, each.id) for each in found.headings] == [
        (2, "one-toolscall"),
        (3, "again"),
        (2, "again-2"),
        (2, "again-3"),
    ]
    assert '<a class="doc-anchor" href="#again-2" aria-label="Link: Again">#</a></h2>' in found.html
    assert [part.heading for part in found.sections] == ["Title", "One tools/call", "Again", "Again", "Again"]


def test_the_text_of_a_part_is_what_people_read() -> None:
    source = "First *words* of\n[a link](/docs).\n\n## Part\n\n- `code` and\n- more\n\n```\nmake run\n```"
    assert [(part.id, part.text) for part in rendered(source).sections] == [
        ("", "First words of a link."),
        ("part", "code and more make run"),
    ]


def test_a_link_without_an_address_stays_as_text() -> None:
    html = rendered("See [the file](../x.yaml) and [the page](/status).").html
    assert html == '<p>See the file and <a href="/status">the page</a>.</p>\n'


def test_code_is_a_block_that_can_be_copied() -> None:
    html = rendered("```sh\ncurl -H 'A: <b>'\n```").html
    assert 'role="region" aria-label="Example 1"><code>curl -H &#x27;A: &lt;b&gt;&#x27;</code>' in html
    assert "data-copy" in html


def test_a_picture_is_one_of_ours() -> None:
    assert rendered("![Agents](picture:flow)").html.startswith("<figure")
    with pytest.raises(ValueError, match="no picture"):
        rendered("![Agents](https://example.com/a.png)")


def test_a_document_begins_with_its_title() -> None:
    with pytest.raises(ValueError, match="begins with its title"):
        render("Words.\n", lambda target: target)


@pytest.mark.parametrize(
    ("text", "name"),
    [("Who calls", "who-calls"), ("`-32700`", "-32700"), ("vendor_timeout", "vendor_timeout"), ("A's, b", "as-b")],
)
def test_ids_are_those_of_the_repository(text: str, name: str) -> None:
    assert heading_id(text) == name
