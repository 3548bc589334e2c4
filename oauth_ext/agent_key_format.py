"""Pure: the format of an agent key, `cak_<12 base62>_<43 base62>`, public prefix first. Spec: §2 Agent key · D72"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MARK = "cak_"
PUBLIC_CHARACTERS = 12
SECRET_CHARACTERS = 43  # 256 bits in base62

_SHAPE = re.compile(rf"({MARK}[0-9A-Za-z]{{{PUBLIC_CHARACTERS}}})_([0-9A-Za-z]{{{SECRET_CHARACTERS}}})")


@dataclass(frozen=True, slots=True)
class AgentKeyParts:
    # With its `cak_`. Rows are looked up by it, and it may be shown.
    prefix: str
    secret: str = field(repr=False)  # never stored; rows hold its SHA-256

    def text(self) -> str:
        return f"{self.prefix}_{self.secret}"


def build(public: str, secret: str) -> AgentKeyParts:
    """Raises: ValueError when a text has the wrong length or alphabet; the message repeats neither text."""
    parts = parse(f"{MARK}{public}_{secret}")
    if parts is None:
        raise ValueError("an agent key is made of 12 and 43 base62 characters")
    return parts


def parse(text: str) -> AgentKeyParts | None:
    """Returns None unless `text` is spelled exactly like an agent key."""
    match = _SHAPE.fullmatch(text)
    return None if match is None else AgentKeyParts(prefix=match[1], secret=match[2])
