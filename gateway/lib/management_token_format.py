"""Pure: the format of a management token, `gwt_<12 base62>_<43 base62>`, public prefix first. Spec: D168"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MARK = "gwt_"
PUBLIC_CHARACTERS = 12
SECRET_CHARACTERS = 43  # 256 bits in base62

_SHAPE = re.compile(rf"({MARK}[0-9A-Za-z]{{{PUBLIC_CHARACTERS}}})_([0-9A-Za-z]{{{SECRET_CHARACTERS}}})")


@dataclass(frozen=True, slots=True)
class ManagementTokenParts:
    # With its `gwt_`. Rows are looked up by it, and it may be shown.
    prefix: str
    secret: str = field(repr=False)  # never stored; rows hold its SHA-256

    def text(self) -> str:
        return f"{self.prefix}_{self.secret}"


def parse(text: str) -> ManagementTokenParts | None:
    """Returns None unless `text` is spelled exactly like a management token."""
    match = _SHAPE.fullmatch(text)
    return None if match is None else ManagementTokenParts(prefix=match[1], secret=match[2])


def presented(authorization: str | None) -> str | None:
    """The management token of an Authorization header, well-formed or not. None if it holds none."""
    scheme, _, bearer = (authorization or "").partition(" ")
    bearer = bearer.strip()
    return bearer if scheme.lower() == "bearer" and looks_like_one(bearer) else None


def looks_like_one(bearer: str) -> bool:
    # Malformed ones count too.
    return bearer.startswith(MARK)


def is_within(text: str) -> bool:
    """Whether a whole management token stands anywhere in `text`."""
    return MARK in text and _SHAPE.search(text) is not None
