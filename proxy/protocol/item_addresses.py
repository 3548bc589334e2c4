"""Pure: addresses of resources: the vendor's own, and those that callers of the unified endpoint use.

    file:///notes.txt  <->  acme+file:///notes.txt
    ui://board/main    <->  ui://acme+board/main

A slug that begins with a digit is written `v.<slug>`, because a scheme begins with a letter. Such addresses stand in
people's notes: the rule never changes. docs/decisions/0104
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from gateway.lib.uri_templates import climbs, values_in

MAX_CHARACTERS: Final = 4_096
AUDITED_CHARACTERS: Final = 512
APP_SCHEME: Final = "ui://"
_DIGIT_MARK: Final = "v."

_app = re.compile(re.escape(APP_SCHEME), re.IGNORECASE).match
_encoded_character = re.compile(r"%([0-9A-Fa-f]{2})")
_path_segments = re.compile(r"[/\\]").split
_user_info = re.compile(r"://[^/\\]*@")  # up to the last @: a user may contain one
_cut_authority = re.compile(r"://[^/\\]*\Z")


def exposed(slug: str, uri: str) -> str:
    """The address, or template, of a vendor's resource at the unified endpoint."""
    app = _app(uri)
    if app is not None:  # hosts of apps ask for nothing but their own scheme
        return f"{uri[: app.end()]}{slug}+{uri[app.end() :]}"
    return f"{_DIGIT_MARK if slug[:1].isdigit() else ''}{slug}+{uri}"


def is_app(uri: str) -> bool:
    """Whether the vendor's own address is that of an app."""
    return _app(uri) is not None


def app_key(uri: str) -> str:
    """The same for equal addresses of apps: scheme in lower case, letters and digits not encoded. RFC 3986, 6.2.2"""
    app = _app(uri)
    return _encoded_character.sub(_decoded, uri if app is None else f"{APP_SCHEME}{uri[app.end() :]}")


def _decoded(encoded: re.Match[str]) -> str:
    character = chr(int(encoded[1], 16))
    is_plain = character.isascii() and (character.isalnum() or character in "-._~")
    return character if is_plain else encoded[0].upper()


def split(address: str, slugs: Collection[str]) -> tuple[str, str] | None:
    """The slug and the vendor's own address; None for one that begins with none of `slugs`."""
    app = _app(address)
    named, plus, rest = (address[app.end() :] if app else address).partition("+")
    if not plus:
        return None
    slug = named
    if app is None:
        slug = named.removeprefix(_DIGIT_MARK)
        if slug[:1].isdigit() != (slug != named):  # one spelling for each slug
            return None
    if slug not in slugs:
        return None
    return slug, f"{address[: app.end()]}{rest}" if app else rest


def fault_in(address: object) -> str:
    """Why no vendor may be asked for the address; "" if one may. Addresses go to vendors as they are."""
    if not isinstance(address, str) or not address:
        return "it must be the address of a resource"
    if len(address) > MAX_CHARACTERS:
        return f"it has more than {MAX_CHARACTERS} characters"
    # Some vendors' parsers cut spaces off: the address would be another one.
    if not address.isprintable() or address != address.strip():
        return "it has characters that an address cannot have"
    if _climbs(address):
        return "its path must not have the segments . and .."
    return ""


def _climbs(address: str) -> bool:
    """Whether a segment of the path leads upwards, in any spelling."""
    return climbs(_path_segments, re.split(r"[?#]", address, maxsplit=1)[0])


def audited(uri: str) -> str:
    """The address as the request log has it: without query, fragment and user, which may hold secrets."""
    bare = re.split(r"[?#]", uri[:MAX_CHARACTERS], maxsplit=1)[0]
    shown = _user_info.sub("://", bare)
    if len(bare) == MAX_CHARACTERS:  # perhaps cut in the middle of a user
        shown = _cut_authority.sub("://", shown)
    return shown[:AUDITED_CHARACTERS]


def fits(template: str, address: str) -> bool:
    """Whether the address may be made of the template. Only to find its vendor: expressions stand for any text.

    A template must begin with a scheme: `{+any}` would attract the addresses of other vendors. A simple expression
    has no slash. Takes a millisecond at most, whatever a vendor writes.
    """
    found = values_in(template, address)
    return found is not None and not any("/" in value and expression[1:2] not in "+#/?&" for expression, value in found)
