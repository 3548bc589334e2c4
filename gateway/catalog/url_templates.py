"""Pure: vendor addresses with placeholders, filled in so that no value can change the address's structure."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

from gateway.catalog.template_grammar import FieldError, Placeholder, TemplateError, parse, placeholders, value_of

# RFC 1035 §2.3.1 and RFC 1123 §2.1: 1 to 63 letters, digits and dashes, no dash at either end.
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_PATH = re.compile(r"(?:/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*)*")
_QUERY = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*")
_TEMPLATE = re.compile(
    r"(?:(?P<scheme>https?)://(?P<authority>[^/?#]*)|\{(?P<base>[^{}]*)\}(?=[/?]|$))"
    r"(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?"
)
_BASE = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?", re.IGNORECASE)
# RFC 1035 §2.3.4, in characters without the trailing dot.
_MAX_HOST_LENGTH = 253
_STAND_IN = "x"  # replaces a placeholder while the literal rest of a template is validated


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """An address in parts, each with optional placeholders. With `base` the customer supplies scheme and host."""

    base: str
    scheme: str
    host: str
    port: str
    path: str
    query: tuple[str, ...]

    @property
    def mandatory(self) -> tuple[str, ...]:
        """Fields that the address needs: all but those of the query."""
        names = (self.base,) if self.base else ()
        return tuple(dict.fromkeys(names + placeholders(f"{self.host}:{self.port}{self.path}")))


@lru_cache(maxsize=2048)  # templates come from the catalog only, so their number is bounded
def parse_url(template: str) -> UrlTemplate:
    """Split and validate an address template. Spec: contract §4

    Raises: TemplateError: not http(s), user information, a fragment, or a misplaced placeholder.
    """
    if any(isinstance(part, Placeholder) and part.base64 for part in parse(template)):
        raise TemplateError("{b64:...} is for headers, not for the address")
    match = _TEMPLATE.fullmatch(template)
    if match is None:
        raise TemplateError("must be an address such as https://vendor.example/mcp, without a fragment")
    authority, path, query = match["authority"] or "", match["path"] or "", match["query"]
    if "@" in authority:
        raise TemplateError("may not hold a user name or password")
    host, port = ("", "") if match["base"] else _split_authority(authority)
    pairs = tuple(query.split("&")) if query else ()
    if not _PATH.fullmatch(_without_placeholders(path)) or _has_dot_segment(path):
        raise TemplateError("has characters or dot segments that may not stand in a path")
    if not _QUERY.fullmatch(_without_placeholders(query or "")):
        raise TemplateError("has characters that may not stand in a query")
    return UrlTemplate(
        base=match["base"] or "", scheme=match["scheme"] or "", host=host, port=port, path=path, query=pairs
    )


def render_url(template: str, fields: Mapping[str, str]) -> str:
    """Raises: TemplateError; FieldError when a value is missing or not allowed at its place. Spec: contract §4"""
    parts = parse_url(template)
    origin = _base(parts.base, fields) if parts.base else _origin(parts, fields)
    path = "/".join(_path_segment(segment, fields) for segment in parts.path.split("/"))
    # Query parameters without a value are left out.
    query = "&".join(pair for pair in (_query_pair(each, fields) for each in parts.query) if pair is not None)
    return origin + path + (f"?{query}" if query else "")


def _split_authority(authority: str) -> tuple[str, str]:
    """(host, port), both still with placeholders; the port is empty if absent."""
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, colon, port = authority, "", ""
    if not _is_host(_without_placeholders(host)):
        raise TemplateError("has no valid host name")
    if colon and not (_is_port(port) or (placeholders(port) and _without_placeholders(port) == _STAND_IN)):
        raise TemplateError("has no valid port")
    return host, port


def _without_placeholders(text: str) -> str:
    return "".join(part if isinstance(part, str) else _STAND_IN for part in parse(text))


def _has_dot_segment(path: str) -> bool:
    return any(unquote(segment) in {".", ".."} for segment in path.split("/"))


def _is_host(host: str) -> bool:
    if host.startswith("[") and host.endswith("]"):
        try:
            return ipaddress.IPv6Address(host[1:-1]).scope_id is None
        except ValueError:
            return False
    return len(host) <= _MAX_HOST_LENGTH and _HOST_NAME.fullmatch(host) is not None


def _is_port(port: str) -> bool:
    return port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535


def _base(name: str, fields: Mapping[str, str]) -> str:
    """Scheme, host, port and leading path as the customer typed them, without a trailing slash."""
    match = _BASE.fullmatch(value_of(name, fields))
    if match is None:
        raise FieldError(name, "must be an address such as https://mcp.example.com")
    authority, path = match["authority"], (match["path"] or "").rstrip("/")
    if "@" in authority:
        raise FieldError(name, "may not hold a user name or password")
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, "443"
    if not _is_host(host) or not _is_port(port):
        raise FieldError(name, "has no valid host name or port")
    if not _PATH.fullmatch(path) or _has_dot_segment(path):
        raise FieldError(name, "has a path that is not allowed")
    return f"{match['scheme'].lower()}://{authority.lower()}{path}"


def _origin(parts: UrlTemplate, fields: Mapping[str, str]) -> str:
    host = ""
    for part in parse(parts.host):
        host += part if isinstance(part, str) else _host_value(part.names[0], fields)
    names = placeholders(parts.host)
    if names and not _is_host(host):  # each value is valid, but the combined label or name may be too long
        raise FieldError(names[0], "makes the host name too long")
    port = parts.port
    for name in placeholders(parts.port):
        port = value_of(name, fields)
        if not _is_port(port):
            raise FieldError(name, "must be a port number")
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")


def _host_value(name: str, fields: Mapping[str, str]) -> str:
    value = value_of(name, fields)
    if len(value) > _MAX_HOST_LENGTH or not _HOST_NAME.fullmatch(value):
        raise FieldError(name, "may hold only letters, digits, dashes and dots")
    return value.lower()


def _path_segment(template: str, fields: Mapping[str, str]) -> str:
    segment = ""
    for part in parse(template):
        segment += part if isinstance(part, str) else _path_value(part.names[0], fields)
    names = placeholders(template)
    if names and segment in {".", ".."}:  # a client would resolve it and leave the vendor's path
        raise FieldError(names[0], "may not be '.' or '..'")
    return segment


def _path_value(name: str, fields: Mapping[str, str]) -> str:
    value = value_of(name, fields)
    if not value:
        raise FieldError(name, "is required")
    return _encoded(name, value)


def _query_pair(template: str, fields: Mapping[str, str]) -> str | None:
    names = placeholders(template)
    if names and not any(value_of(name, fields) for name in names):
        return None
    return "".join(
        part if isinstance(part, str) else _encoded(part.names[0], fields[part.names[0]]) for part in parse(template)
    )


def _encoded(name: str, value: str) -> str:
    try:
        return quote(value, safe="")
    except UnicodeEncodeError:  # a lone surrogate, from JSON such as "\ud800"; the error itself would hold the value
        raise FieldError(name, "has characters that are not allowed") from None
