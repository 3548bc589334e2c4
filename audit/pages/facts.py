"""The metadata of an admin log row in words: values before and after, and the rest as a list."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from audit.models import AdminAuditEntry

MAX_LISTED = 50  # values of one list
_FORMER = "former"
# A service stores the new value under a name of its own and the one before under `was` or `were`.
_NEW_VALUES = {"was": ("role", "status", "defaultServerAccess"), "were": ("vendors",)}
_BOTH = (("from", "to"), ("before", "after"))
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.]")


@dataclass(frozen=True, slots=True)
class Change:
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Facts:
    changes: list[Change]
    others: list[tuple[str, str]]


def facts_of(entry: AdminAuditEntry) -> Facts:
    rest: dict[str, Any] = dict(entry.metadata)
    changes = [*_with_former(entry, rest), *_with_was(rest), *_with_both(rest)]
    return Facts(changes, [(_words(name), _text(value)) for name, value in sorted(rest.items())])


def _with_former(entry: AdminAuditEntry, rest: dict[str, Any]) -> list[Change]:
    """`formerName` beside `name`; without the latter the label of the target is the new name."""
    found = []
    for former in [name for name in rest if name.startswith(_FORMER) and len(name) > len(_FORMER)]:
        name = former[len(_FORMER)].lower() + former[len(_FORMER) + 1 :]
        after = rest.pop(name, entry.target_label if name == "name" else None)
        found.append(Change(_words(name), _text(rest.pop(former)), _text(after)))
    return found


def _with_was(rest: dict[str, Any]) -> list[Change]:
    return [
        Change(_words(name), _access(name, rest.pop(before)), _access(name, rest.pop(name)))
        for before, names in _NEW_VALUES.items()
        for name in names
        if before in rest and name in rest
    ]


def _with_both(rest: dict[str, Any]) -> list[Change]:
    found = []
    for name, value in list(rest.items()):
        for before, after in _BOTH:
            if isinstance(value, Mapping) and set(value) == {before, after}:
                found.append(Change(_words(name), _text(value[before]), _text(value[after])))
                del rest[name]
    return found


def _access(name: str, value: object) -> str:
    # A service client without a list can use every vendor.
    return gettext("all vendors") if name == "vendors" and value is None else _text(value)


def _words(name: str) -> str:
    """`defaultServerAccess` and `default_server_access` are both `Default server access`."""
    return _WORD_START.sub(" ", name).lower().capitalize()


def _text(value: object) -> str:
    match value:
        case None | "" | []:
            return gettext("none")
        case bool():
            return gettext("yes") if value else gettext("no")
        case list():
            listed = ", ".join(_text(each) for each in value[:MAX_LISTED])
            if len(value) <= MAX_LISTED:
                return listed
            return gettext("%(listed)s and %(count)s more") % {"listed": listed, "count": len(value) - MAX_LISTED}
        case dict():
            return json.dumps(value, ensure_ascii=False, sort_keys=True)
        case _:
            return str(value)
