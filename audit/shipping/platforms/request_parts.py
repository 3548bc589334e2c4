"""Pure: the host and path of an address, and text for a header, as a person gave them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

_HEADER_TEXT = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def host_of(url: str) -> str:
    """In lower case, without the standard port of https; an unusual port or a user name stays in it. Empty for a host
    beyond ASCII, which two programs may read as two hosts."""
    netloc = urlsplit(url).netloc
    return netloc.lower().removesuffix(":443") if netloc.isascii() else ""


def with_path(url: str, path: str) -> str:
    """`path` stands where the address has none; an address that has one keeps it."""
    parts = urlsplit(url)
    return urlunsplit(parts if parts.path not in ("", "/") else parts._replace(path=path))


def fits_header(text: str) -> bool:
    """One line of printable ASCII without spaces at its ends: a line end would begin another header."""
    return _HEADER_TEXT.fullmatch(text) is not None
