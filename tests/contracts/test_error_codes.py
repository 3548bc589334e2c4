"""Every error code that the product can answer has its entry on /docs/errors, and every entry has its code."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from gateway.lib import error_help
from gateway.site.help.library import library
from gateway.site.help.markdown import Heading, heading_id
from tests.contracts import error_codes

pytestmark = pytest.mark.one_back_end


def entries() -> list[Heading]:
    document = library().find("errors")
    assert document is not None
    return [heading for heading in document.content.headings if heading.level == 3]


def test_every_code_has_an_entry_and_every_entry_a_code() -> None:
    written, known = [entry.text for entry in entries()], error_codes.all_codes()
    assert sorted(known - set(written)) == [], "codes without an entry in docs/guide/errors.md"
    assert sorted(set(written) - known) == [], "entries without a code"
    assert len(written) == len(set(written))


def test_the_address_of_a_code_is_that_of_its_entry() -> None:
    assert {entry.text: entry.id for entry in entries()} == {code: code for code in error_codes.all_codes()}
    assert all(heading_id(code) == code for code in error_codes.all_codes())
    assert error_help.link("vendor_timeout") == '<http://testserver/docs/errors#vendor_timeout>; rel="help"'


def test_an_entry_says_more_than_its_code() -> None:
    document = library().find("errors")
    assert document is not None
    short = [part.heading for part in document.content.sections if part.heading in error_codes.all_codes()]
    assert len(short) == len(error_codes.all_codes())
    assert [part.heading for part in document.content.sections if part.heading in short and len(part.text) < 12] == []


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ('raise HttpError(404, "not_here", "No.")', {"not_here"}),
        ('raise responses.HttpError(404, GONE, "No.")', {"gone_away"}),
        ('HttpError(401, error or "nobody", "Who?")', {"nobody"}),
        ('raise OAuthErrorResponse("not_now", "No.", 400)', {"not_now"}),
        ("HttpError(502, Fault.SLOW.value, text)", {"too_slow"}),
        ('render(request, 400, code="odd")', {"odd"}),
        ('data = {"reason": "lost", "vendor": "acme"}', {"lost"}),
        ('error = "late" if text else None', {"late"}),
        ('error, text = "early", "Too early."', {"early"}),
        ("self._render_error(request, 400, *PAIR)", {"first"}),
        ('raise HttpError(400, code, "From elsewhere.")', set()),
        ('print("not_a_code")', set()),
    ],
)
def test_codes_are_found_where_they_are_written(tmp_path: Path, source: str, codes: set[str]) -> None:
    file = tmp_path / "module.py"
    file.write_text(source)
    module = types.ModuleType("module")
    fault = types.SimpleNamespace(SLOW=types.SimpleNamespace(value="too_slow"))
    module.__dict__.update(__file__=str(file), GONE="gone_away", Fault=fault, PAIR=("first", "second"))
    assert error_codes.codes_of(module) == codes
