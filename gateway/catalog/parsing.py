"""Pure: a catalog file parsed into vendors, or into the list of all its faults."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gateway.catalog.header_names import header_name_fault
from gateway.catalog.template_grammar import FIELD_NAME, TemplateError, parse, placeholders
from gateway.catalog.toml_lines import LineIndex
from gateway.catalog.toml_tables import CatalogError, FaultList, TomlTable
from gateway.catalog.url_templates import parse_url
from gateway.catalog.vendor import (
    MAX_TTL_S,
    SLUG_MAX_CHARACTERS,
    TOOL_NAME_MAX_CHARACTERS,
    CredentialField,
    HeaderTemplate,
    ToolOverride,
    Validation,
    Vendor,
    is_tool_name,
)

__all__ = ["CatalogError", "CatalogErrors", "CatalogFile", "decode_catalog", "parse_catalog", "read_catalog"]

MAX_FILE_BYTES = 1024 * 1024
# "mcp" and "all" are words of the interface: /v1/mcp is the unified endpoint, scope mcp:all means every vendor.
RESERVED_SLUGS = frozenset({"mcp", "all"})
_SLUG = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{SLUG_MAX_CHARACTERS - 1}}}")
_TOOL_PREFIX = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_SYNTAX_LINE = re.compile(r"\(at line (\d+), column \d+\)$")
_KEY_OF_LINE = re.compile(r"""\s*(\[{0,2}\s*[\w."' -]+?)\s*(?:=|\]|$)""")
_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class CatalogErrors(ValueError):
    """All faults of one or more catalog files. `str()` has one line for each."""

    def __init__(self, errors: Iterable[CatalogError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """A parsed catalog file with the line of each key."""

    source: str
    vendors: tuple[Vendor, ...]
    lines: LineIndex

    def error(self, number: int, key: str, message: str) -> CatalogError:
        """An error at `key` of the vendor with this index (from 0)."""
        faults = FaultList(self.source, self.lines)
        faults.add(("vendor", number, key), message)
        return faults.found[0]


def decode_catalog(raw: bytes, source: str) -> str:
    """The text of a catalog file. Raises: CatalogErrors when it is too long or not UTF-8."""
    if len(raw) > MAX_FILE_BYTES:
        raise CatalogErrors([CatalogError(f"is longer than {MAX_FILE_BYTES} bytes", 1, "file", source=source)])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise CatalogErrors([CatalogError("is not UTF-8 text", line, "file", source=source)]) from None


def parse_catalog(text: str, source: str = "catalog") -> list[Vendor]:
    """The vendors of a catalog file, in its order. Raises: CatalogErrors with all faults. Spec: contract §4"""
    return list(read_catalog(text, source).vendors)


def read_catalog(text: str, source: str) -> CatalogFile:
    """The vendors with the lines on which they stand. Raises: CatalogErrors with all faults. Spec: contract §4"""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogErrors([_syntax_error(str(error), text, source)]) from None
    except RecursionError:
        raise CatalogErrors([CatalogError("is nested too deeply", 1, "file", source=source)]) from None
    lines = LineIndex(text)
    faults = FaultList(source, lines)
    top = TomlTable(data, (), faults)
    vendors = [_vendor(table) for table in top.tables("vendor", limit=1000)]
    top.finish()
    if not vendors and not faults.found:
        faults.add(("vendor",), "is missing: the file has no [[vendor]]")
    _refuse_duplicates(vendors, faults)
    if faults.found:
        raise CatalogErrors(sorted(faults.found, key=lambda fault: fault.line))
    return CatalogFile(source=source, vendors=tuple(vendors), lines=lines)


def _syntax_error(message: str, text: str, source: str) -> CatalogError:
    match = _SYNTAX_LINE.search(message)
    lines = text.splitlines() or [""]
    line = int(match.group(1)) if match else len(lines)
    key = _KEY_OF_LINE.match(lines[line - 1]) if line <= len(lines) else None
    name = key.group(1).strip("[ ") if key else ""
    return CatalogError(_SYNTAX_LINE.sub("", message).strip(), line, name or "file", source=source)


def _vendor(table: TomlTable) -> Vendor:
    # After a fault the vendor is incomplete and only serves to find further faults.
    slug = _slug(table)
    fields = tuple(_field(each) for each in table.tables("fields", limit=32))
    _refuse_repeated_names([each.name for each in fields], "fields", table)
    vendor = Vendor(
        slug=slug,
        name=table.text("name", limit=100),
        url=_url(table, fields),
        tool_prefix=_tool_prefix(table, slug),
        category=table.text("category", "Other", limit=60) or "Other",
        docs_url=_docs_url(table),
        timeout_seconds=table.number("timeout_seconds", 30, 1, 300),
        headers=tuple(_header(each, fields) for each in table.tables("headers", limit=32)),
        fields=fields,
        validation=_validation(table.table("validation")),
        tools=MappingProxyType(_tools(table.table("tools"))),
        verified=table.flag("verified", False),
    )
    _refuse_repeated_names([each.name.lower() for each in vendor.headers], "headers", table)
    table.finish()
    return vendor


def _slug(table: TomlTable) -> str:
    slug = table.text("slug", limit=500)
    if slug and not _SLUG.fullmatch(slug):
        table.fault("slug", f"must be 1 to {SLUG_MAX_CHARACTERS} lower-case letters, digits and dashes, no dash first")
    if slug in RESERVED_SLUGS:
        table.fault("slug", f'may not be "{slug}", a word the interface uses itself')
    return slug


def _tool_prefix(table: TomlTable, slug: str) -> str:
    given = table.text("tool_prefix", "")
    if not given and not _SLUG.fullmatch(slug):
        return ""  # the slug's fault is already reported
    prefix = given or slug.replace("-", "_")
    if not _TOOL_PREFIX.fullmatch(prefix) or len(prefix) > SLUG_MAX_CHARACTERS:
        # A double underscore separates prefix and name (D111): inside a prefix it would make names ambiguous.
        table.fault("tool_prefix", "must be lower-case letters and digits in words joined by single underscores")
    return prefix


def _url(table: TomlTable, fields: tuple[CredentialField, ...]) -> str:
    url = table.text("url", limit=2000)
    if not url:
        return url
    try:
        parts = parse_url(url)
    except TemplateError as error:
        table.fault("url", str(error))
        return ""
    by_name = {each.name: each for each in fields}
    for name in placeholders(url):
        field = by_name.get(name)
        if field is None:
            table.fault("url", f"names the field {name}, which this vendor does not have")
        elif field.secret:
            table.fault("url", f"names the secret field {name}: addresses are logged, put it into a header")
        elif name in parts.mandatory and not (field.required or field.default):
            table.fault("url", f"names the field {name} outside the query: it must be required or have a default")
    return url


def _docs_url(table: TomlTable) -> str:
    docs_url = table.text("docs_url", "", limit=2000)
    if docs_url and not re.fullmatch(r"https?://[^\s/@?#{}]+(?:[/?#][^\s{}\"<>]*)?", docs_url):
        table.fault("docs_url", "must be an http(s) address")
    return docs_url


def _header(table: TomlTable, fields: tuple[CredentialField, ...]) -> HeaderTemplate:
    name = table.text("name", limit=500)
    value = table.text("value", limit=2000)
    fault = header_name_fault(name) if name else ""
    if fault:
        table.fault("name", fault)
    try:
        parts = parse(value)
    except TemplateError as error:
        table.fault("value", str(error))
        parts, value = (), ""
    if not all(part.isascii() for part in parts if isinstance(part, str)):
        table.fault("value", "may hold only ASCII characters")
    known = {each.name for each in fields}
    for unknown in [each for each in placeholders(value) if each not in known]:
        table.fault("value", f"names the field {unknown}, which this vendor does not have")
    table.finish()
    return HeaderTemplate(name=name, value=value)


def _field(table: TomlTable) -> CredentialField:
    name = table.text("name", limit=500)
    if name and not FIELD_NAME.fullmatch(name):
        table.fault("name", "must be up to 64 letters, digits and underscores, a letter first")
    field = CredentialField(
        name=name,
        label=table.text("label", "", limit=100) or name,
        secret=table.flag("secret", True),  # secret by default: a value once shown cannot be hidden again
        required=table.flag("required", True),
        placeholder=table.text("placeholder", "", limit=200),
        help=table.text("help", "", limit=500),
        options=table.texts("options", limit=100),
        default=table.text("default", "", limit=500),
    )
    if field.default and field.options and field.default not in field.options:
        table.fault("default", "must be one of the options")
    if field.default and field.secret:
        table.fault("default", "is not for secret fields")
    table.finish()
    return field


def _validation(table: TomlTable | None) -> Validation | None:
    if table is None:
        return None
    tool = table.text("tool", limit=TOOL_NAME_MAX_CHARACTERS)
    arguments = table.table("arguments")
    values = arguments.take_all() if arguments else {}
    if arguments and not _is_json(values):
        table.fault("arguments", "may hold only what JSON can say: no dates, times, infinities, NUL")
        values = {}
    table.finish()
    return Validation(tool=tool, arguments=MappingProxyType(values))


def _is_json(value: dict[str, Any]) -> bool:
    try:
        return not _NUL_IN_JSON.search(json.dumps(value, allow_nan=False))  # PostgreSQL's jsonb cannot hold NUL
    except (TypeError, ValueError):
        return False


def _tools(table: TomlTable | None) -> dict[str, ToolOverride]:
    overrides: dict[str, ToolOverride] = {}
    if table is None:
        return overrides
    for name in table.keys_left():
        each = table.table(name)
        if each is None:
            continue
        if not is_tool_name(name):
            each.faults.add(each.path, f"must be a tool name of 1 to {TOOL_NAME_MAX_CHARACTERS} characters")
        overrides[name] = ToolOverride(
            read_only=each.flag("read_only", None), ttl_seconds=each.whole_number("ttl_seconds", 0, MAX_TTL_S)
        )
        each.finish()
    return overrides


def _refuse_repeated_names(names: list[str], key: str, table: TomlTable) -> None:
    for number, name in enumerate(names):
        if name and name in names[:number]:
            table.faults.add((*table.path, key, number, "name"), f'repeats "{name}"')


def _refuse_duplicates(vendors: list[Vendor], faults: FaultList) -> None:
    for key in ("slug", "tool_prefix"):
        first: dict[str, int] = {}
        for number, vendor in enumerate(vendors):
            value = getattr(vendor, key)
            if value and value in first and (key == "slug" or vendors[first[value]].slug != vendor.slug):
                line = faults.lines.line(("vendor", first[value], key))
                faults.add(("vendor", number, key), f'repeats "{value}" of line {line}')
            first.setdefault(value, number)
