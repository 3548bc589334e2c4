"""The outcome of a run in words, and the vendor's result as text, table or image, never as HTML."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from gateway.lib import strict_json
from gateway.lib.translated import translated
from proxy.outcomes import (
    Asked,
    BadArguments,
    Delivered,
    Denied,
    Failed,
    InternalError,
    Outcome,
    RateLimited,
    UnknownTool,
    VendorError,
    VendorFault,
)
from proxy.protocol import replies

# A larger result is neither parsed nor shown.
MAX_PARSED_BYTES = 2 * 1024 * 1024
MAX_BLOCKS = 50
MAX_CHARACTERS = 100_000
MAX_ROWS, MAX_COLUMNS, MAX_CELL_CHARACTERS = 200, 12, 300
MAX_IMAGE_BYTES = 1024 * 1024
MAX_DEPTH = 64
# Raster images only: an SVG image is a document.
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ENCODER = json.JSONEncoder(indent=2, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Block:
    """One part of a result. `note` says what is left out."""

    text: str = ""
    image: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """`status` is that of the row; `heading` and `text` say it in words. `url`: the page where it can be mended."""

    status: str
    heading: str
    text: str = ""
    code: str = ""
    url: str = ""
    blocks: list[Block] = field(default_factory=list)


def result_of(outcome: Outcome, vendor_name: str) -> Result:
    match outcome:
        case Delivered(is_error=False):
            return Result("success", _("The tool responded"), blocks=_blocks(outcome.raw_result))
        case Asked():  # only a caller of the modern revision is asked
            return Result("error", _("The tool reported an error"), code="tool_error")
        case Delivered():
            heading = _("The tool reported an error")
            return Result("error", heading, code="tool_error", blocks=_blocks(outcome.raw_result))
        case VendorError():
            heading = _("%(vendor)s returned an error") % {"vendor": vendor_name}
            return Result("error", heading, replies.cut_text(outcome.message), "vendor_error")
        case Failed():
            return Result(
                "error", fault_words(outcome.fault, vendor_name), translated(outcome.detail), outcome.fault.value
            )
        case Denied():
            return Result("denied", _("Call denied"), outcome.text, outcome.denial.value, outcome.page)
        case UnknownTool():
            text = _("You have no %(vendor)s tool with this name.") % {"vendor": vendor_name}
            return Result("denied", _("Call denied"), text, "unknown_tool")
        case BadArguments():
            return Result("denied", _("The arguments can’t be used"), outcome.text, "bad_arguments")
        case RateLimited():
            text = _("You’ve reached your limit of calls per hour. Try again in %(seconds)s s.") % {
                "seconds": outcome.retry_after_s
            }
            return Result("denied", _("Too many calls"), text, "rate_limited")
        case InternalError():
            text = _("Send support the request ID.")
            return Result("error", _("Something went wrong on our side"), text, "internal_error")


def fault_words(fault: VendorFault, vendor_name: str) -> str:
    words = {
        VendorFault.UNAVAILABLE: _("%(vendor)s can’t be reached"),
        VendorFault.TIMEOUT: _("%(vendor)s didn’t respond in time"),
        VendorFault.BAD_RESPONSE: _("%(vendor)s sent a response that can’t be read"),
        VendorFault.REJECTED_CREDENTIALS: _("%(vendor)s rejected the credentials"),
    }
    return words[fault] % {"vendor": vendor_name}


def _blocks(raw_result: bytes) -> list[Block]:
    if len(raw_result) > MAX_PARSED_BYTES:
        return [Block(note=_("The result is too large to show here. Clients receive all of it."))]
    result = _json_of(raw_result)
    if result is None:
        return [Block(note=_("The result can’t be read."))]
    shown = list(_of_result(result)) if isinstance(result, dict) else []
    return shown or [Block(note=_("The result is empty."))]


def _of_result(result: dict[str, Any]) -> Iterator[Block]:
    content = result.get("content")
    parts = content if isinstance(content, list) else []
    structured = result.get("structuredContent")
    # The text of a structured result is usually the same once more.
    if structured is not None and len(parts) == 1 and _json_of_part(parts[0]) == structured:
        parts = []
    # The rest is not prepared either: a vendor may send any number of parts.
    for each in parts[:MAX_BLOCKS]:
        yield _of_part(each)
    if len(parts) > MAX_BLOCKS:
        yield Block(note=_("%(count)s more parts are not shown.") % {"count": len(parts) - MAX_BLOCKS})
    if structured is not None:
        yield _of_value(structured)


def _of_part(part: Any) -> Block:
    if not isinstance(part, dict):
        return _of_text(_pretty(part))
    match part.get("type"), part.get("text"):
        case "text", str(text):
            value = _json_of_part(part)
            return _of_text(text) if not isinstance(value, dict | list) else _of_value(value)
    if part.get("type") == "image":
        return _of_image(part)
    if part.get("type") == "audio":
        return Block(note=_("Audio can’t be played here. Clients receive it."))
    return _of_text(_pretty(part))


def _of_image(part: dict[str, Any]) -> Block:
    data, kind = part.get("data"), part.get("mimeType")
    if not isinstance(kind, str) or kind not in IMAGE_TYPES or not isinstance(data, str):
        return Block(note=_("An image of a type that can’t be shown here. Clients receive it."))
    if len(data) > MAX_IMAGE_BYTES * 4 // 3:
        return Block(note=_("An image that is too large to show here. Clients receive it."))
    try:
        image = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Block(note=_("An image that can’t be read."))
    return Block(image=f"data:{kind};base64,{base64.b64encode(image).decode()}")


def _of_value(value: Any) -> Block:
    rows = _records(value)
    if rows is None:
        return _of_text(_pretty(value))
    columns = tuple(dict.fromkeys(name for row in rows[:MAX_ROWS] for name in row))
    shown = columns[:MAX_COLUMNS]
    note = ""
    if len(rows) > MAX_ROWS or len(columns) > MAX_COLUMNS:
        note = _("%(rows)s of %(all_rows)s rows and %(columns)s of %(all_columns)s columns are shown.") % {
            "rows": min(len(rows), MAX_ROWS),
            "all_rows": len(rows),
            "columns": len(shown),
            "all_columns": len(columns),
        }
    cells = tuple(tuple(_cell(row.get(name, "")) for name in shown) for row in rows[:MAX_ROWS])
    return Block(columns=shown, rows=cells, note=note, text=_pretty(value)[:MAX_CHARACTERS])


def _records(value: Any) -> list[dict[str, Any]] | None:
    """The rows of a table: a list of objects, alone or as the only list or object among an object's members."""
    if isinstance(value, dict):
        inner = [each for each in value.values() if isinstance(each, dict | list)]
        value = inner[0] if len(inner) == 1 else None
    if isinstance(value, list) and value and all(isinstance(each, dict) and each for each in value):
        return value
    return None


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_CELL_CHARACTERS else f"{text[: MAX_CELL_CHARACTERS - 1]}…"


def _of_text(text: str) -> Block:
    note = _("Only the beginning is shown.") if len(text) > MAX_CHARACTERS else ""
    return Block(text=text[:MAX_CHARACTERS], note=note)


def _pretty(value: Any) -> str:
    """The text, or a beginning that is longer than MAX_CHARACTERS."""
    made, characters = [], 0
    # Indentation may make a text a hundred times as long, so no more of it is made than is shown.
    for piece in _ENCODER.iterencode(value):
        made.append(piece)
        characters += len(piece)
        if characters > MAX_CHARACTERS:
            break
    return "".join(made)


def _json_of_part(part: Any) -> Any:
    """The JSON in a text; None for other text."""
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return None
    return _json_of(text.encode())


def _json_of(raw: bytes) -> Any:
    """None for what is no JSON, or nests more deeply than a page can show."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return None if strict_json.nests_deeper(value, MAX_DEPTH) else value
