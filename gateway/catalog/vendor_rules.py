"""Pure: the rules of a vendor that its shape does not state. Spec: contract §4"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from gateway.catalog.header_names import header_name_fault
from gateway.catalog.key_lines import Path
from gateway.catalog.template_grammar import FIELD_NAME, TemplateError, parse, placeholders
from gateway.catalog.url_templates import parse_url
from gateway.catalog.vendor import (
    CONNECTION_LEVELS,
    MAX_TIMEOUT_S,
    MAX_TTL_S,
    SLUG_MAX_CHARACTERS,
    TOOL_NAME_MAX_CHARACTERS,
    CredentialField,
    HeaderTemplate,
    OAuthSettings,
    Validation,
    Vendor,
    is_tool_name,
)

Fault = tuple[Path, str]

# "mcp" and "all" are words of the interface: /v1/mcp is the unified endpoint, scope mcp:all means every vendor.
RESERVED_SLUGS = frozenset({"mcp", "all"})
_EMPTY = "may not be empty"
_MAX_OPTIONS = 100
_SLUG = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{SLUG_MAX_CHARACTERS - 1}}}")
_TOOL_PREFIX = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_DOCS_URL = re.compile(r"https?://[^\s/@?#{}]+(?:[/?#][^\s{}\"<>]*)?")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749 3.3
_ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def catalog_faults(vendors: Sequence[Vendor]) -> Iterator[Fault]:
    """The places of all faults of a file's vendors, with a message for each."""
    for number, vendor in enumerate(vendors):
        yield from _at(("vendor", number), _vendor_faults(vendor))
    for key in ("slug", "tool_prefix"):
        first: dict[str, int] = {}
        for number, vendor in enumerate(vendors):
            value = getattr(vendor, key)
            earlier = first.setdefault(value, number)
            if value and earlier != number and (key == "slug" or vendors[earlier].slug != vendor.slug):
                yield ("vendor", number, key), f'repeats "{value}" of vendor[{earlier}]'


def _vendor_faults(vendor: Vendor) -> Iterator[Fault]:
    yield from _slug_faults(vendor)
    if not vendor.name:
        yield ("name",), _EMPTY
    yield from ((("url",), message) for message in _url_faults(vendor))
    if vendor.docs_url and not _DOCS_URL.fullmatch(vendor.docs_url):
        yield ("docs_url",), "must be an http(s) address"
    if not 1 <= vendor.timeout_seconds <= MAX_TIMEOUT_S:
        yield ("timeout_seconds",), f"must be between 1 and {MAX_TIMEOUT_S}"
    for number, header in enumerate(vendor.headers):
        yield from _at(("headers", number), _header_faults(header, vendor))
    yield from _at(("headers",), _repeated([each.name.lower() for each in vendor.headers]))
    for number, field in enumerate(vendor.fields):
        yield from _at(("fields", number), _field_faults(field))
    yield from _at(("fields",), _repeated([each.name for each in vendor.fields]))
    if vendor.validation:
        yield from _at(("validation",), _validation_faults(vendor.validation))
    if vendor.oauth:
        yield from _at(("oauth",), _oauth_faults(vendor, vendor.oauth))
    yield from _at(("sample",), _sample_faults(vendor))
    for name, tool in vendor.tools.items():
        if not is_tool_name(name):
            yield ("tools", name), f"must be a tool name of 1 to {TOOL_NAME_MAX_CHARACTERS} characters"
        if tool.ttl_seconds is not None and not 0 <= tool.ttl_seconds <= MAX_TTL_S:
            yield ("tools", name, "ttl_seconds"), f"must be between 0 and {MAX_TTL_S}"


def _oauth_faults(vendor: Vendor, oauth: OAuthSettings) -> Iterator[Fault]:
    # The address must be the same for all: tokens are bound to it.
    if vendor.customer_supplied_url:
        yield (), "is not for a vendor with fields in its url"
    # One without a field would be sent in place of the token.
    if any(each.name.lower() == "authorization" and not placeholders(each.value) for each in vendor.headers):
        yield (
            (),
            "is not for a vendor whose Authorization header names no field: the token of the connection goes there",
        )
    if oauth.issuer and (not _DOCS_URL.fullmatch(oauth.issuer) or "?" in oauth.issuer or "#" in oauth.issuer):
        yield ("issuer",), "must be an http(s) address without query"
    for key, name in (("client_id_env", oauth.client_id_env), ("client_secret_env", oauth.client_secret_env)):
        if name and not _ENVIRONMENT_NAME.fullmatch(name):
            yield (key,), "must be the name of a variable in capital letters"
    if oauth.missing_variables:
        yield ("missing_variables",), "is not a key of the catalog"
    if oauth.client_id and oauth.client_id_env:
        yield ("client_id_env",), "is not for a vendor with client_id"
    if oauth.client_secret_env and not oauth.is_registered_by_hand:
        yield ("client_id",), "is missing: client_secret_env is its secret"
    if oauth.client_secret_env and not oauth.issuer:
        yield ("issuer",), "is missing: client_secret_env is a secret of this one server"
    if oauth.client_id and not oauth.client_id.isascii():
        yield ("client_id",), "may hold only ASCII characters"
    if not all(_SCOPE.fullmatch(each) for each in oauth.scopes):
        yield ("scopes",), "must be a list of scopes, each without spaces"
    if not oauth.connections or not set(oauth.connections) <= set(CONNECTION_LEVELS):
        yield ("connections",), f"must name one or both of {' and '.join(CONNECTION_LEVELS)}"


def _sample_faults(vendor: Vendor) -> Iterator[Fault]:
    if vendor.sample is None:
        return
    fields = {each.name: each for each in vendor.fields}
    for name, value in vendor.sample.items():
        if name not in fields:
            yield (name,), "is not a field of this vendor"
        elif fields[name].options and value not in fields[name].options:
            yield (name,), "must be one of the options"
    for name, field in fields.items():
        if field.required and not field.default and not vendor.sample.get(name):
            yield (name,), _EMPTY


def _at(start: Path, faults: Iterator[Fault]) -> Iterator[Fault]:
    return (((*start, *path), message) for path, message in faults)


def _repeated(names: list[str]) -> Iterator[Fault]:
    for number, name in enumerate(names):
        if name and name in names[:number]:
            yield (number, "name"), f'repeats "{name}"'


def _slug_faults(vendor: Vendor) -> Iterator[Fault]:
    slug, prefix = vendor.slug, vendor.tool_prefix
    is_slug = _SLUG.fullmatch(slug) is not None
    if not is_slug:
        characters = f"1 to {SLUG_MAX_CHARACTERS} lower-case letters, digits and dashes, no dash first"
        yield ("slug",), f"must be {characters}" if slug else _EMPTY
    if slug in RESERVED_SLUGS:
        yield ("slug",), f'may not be "{slug}", a word the interface uses itself'
    is_own = prefix != slug.replace("-", "_")
    if (is_slug or is_own) and (not _TOOL_PREFIX.fullmatch(prefix) or len(prefix) > SLUG_MAX_CHARACTERS):
        # A double underscore separates prefix and name (D111): inside a prefix it would make names ambiguous.
        yield ("tool_prefix",), "must be lower-case letters and digits in words joined by single underscores"


def _url_faults(vendor: Vendor) -> Iterator[str]:
    if not vendor.url:
        yield _EMPTY
        return
    try:
        mandatory = parse_url(vendor.url).mandatory
    except TemplateError as error:
        yield str(error)
        return
    by_name = {each.name: each for each in vendor.fields}
    for name in placeholders(vendor.url):
        field = by_name.get(name)
        if field is None:
            yield f"names the field {name}, which this vendor does not have"
        elif field.secret:
            yield f"names the secret field {name}: addresses are logged, put it into a header"
        elif name in mandatory and not (field.required or field.default):
            yield f"names the field {name} outside the query: it must be required or have a default"


def _header_faults(header: HeaderTemplate, vendor: Vendor) -> Iterator[Fault]:
    fault = header_name_fault(header.name) if header.name else _EMPTY
    if fault:
        yield ("name",), fault
    try:
        parts = parse(header.value)
    except TemplateError as error:
        yield ("value",), str(error)
        return
    if not parts:
        yield ("value",), _EMPTY
    if not all(part.isascii() for part in parts if isinstance(part, str)):
        yield ("value",), "may hold only ASCII characters"
    known = {each.name for each in vendor.fields}
    for unknown in [each for each in placeholders(header.value) if each not in known]:
        yield ("value",), f"names the field {unknown}, which this vendor does not have"


def _field_faults(field: CredentialField) -> Iterator[Fault]:
    if not FIELD_NAME.fullmatch(field.name):
        yield ("name",), "must be up to 64 letters, digits and underscores, a letter first" if field.name else _EMPTY
    if not all(field.options):
        yield ("options",), "must be a list of strings, none of them empty"
    if len(set(field.options)) != len(field.options) or len(field.options) > _MAX_OPTIONS:
        yield ("options",), f"may name each value once, and at most {_MAX_OPTIONS}"
    if field.default and field.options and field.default not in field.options:
        yield ("default",), "must be one of the options"
    if field.default and field.secret:
        yield ("default",), "is not for secret fields"


def _validation_faults(validation: Validation) -> Iterator[Fault]:
    if not validation.tool:
        yield ("tool",), _EMPTY
    try:
        text = json.dumps(validation.arguments, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = "\\u0000"
    if _NUL_IN_JSON.search(text):  # PostgreSQL's jsonb cannot hold NUL
        yield ("arguments",), "may hold only what JSON can say: no dates, times, infinities, NUL"
