"""Pure: names that share a slot of a Redis cluster.   docs/decisions/0052

A cluster puts keys with the same hash tag, the text in braces, into one slot. The keys of a script, and those of an
MGET, must be in one slot.
"""

from __future__ import annotations

from collections.abc import Iterable

_SERVICE_CLIENT = "svc:"
SESSION = "session:"


def tag_of_subject(subject: str) -> str:
    """The organization of `svc:<org-id>:<client-id>`. A person may have several, and has a tag of its own."""
    return subject.split(":", 2)[1] if subject.startswith(_SERVICE_CLIENT) else subject


def tagged(tag: str, name: str) -> str:
    return f"{{{tag}}}{name}"


def session_epoch(session: str, expires_s: int) -> str:
    """The epoch of a caller's session, which means nothing after `expires_s` (Unix time)."""
    return f"{SESSION}{expires_s:010x}:{session}"


def is_tagged(name: str) -> bool:
    """Names without a tag are for all organizations. Admissions do not read them each time."""
    return name.startswith("{")


def tag_of(name: str) -> str:
    """The tag of a name made by `tagged`; other names are their own."""
    return name[1:].partition("}")[0] if is_tagged(name) else name


def untagged(name: str) -> str:
    return name.partition("}")[2] if is_tagged(name) else name


def by_tag(names: Iterable[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(tag_of(name), []).append(name)
    return groups
