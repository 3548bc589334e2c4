"""Pure: how an agent key is spelled, `cak_<12 base62>_<43 base62>`. The first half is public, the second is the secret.

Spec: §2 Agent key · D72
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MARK = "cak_"
PUBLIC_CHARACTERS = 12
SECRET_CHARACTERS = 43  # 256 bits in base62

_SHAPE = re.compile(rf"({MARK}[0-9A-Za-z]{{{PUBLIC_CHARACTERS}}})_([0-9A-Za-z]{{{SECRET_CHARACTERS}}})")


@dataclass(frozen=True, slots=True)
class AgentKeyParts:
    """`prefix` (with its `cak_`) may be shown and is what a key is looked up by; `secret` is never stored."""

    prefix: str
    secret: str = field(repr=False)

    def text(self) -> str:
        """The key as its holder sends it."""
        return f"{self.prefix}_{self.secret}"


def build(public: str, secret: str) -> AgentKeyParts:
    """The parts of a key made of two base62 texts.

    Raises: ValueError when a text has the wrong length or alphabet; it repeats neither.
    """
    parts = parse(f"{MARK}{public}_{secret}")
    if parts is None:
        raise ValueError("an agent key is made of 12 and 43 base62 characters")
    return parts


def parse(text: str) -> AgentKeyParts | None:
    """The parts of `text`, or None when it is not spelled exactly like an agent key."""
    match = _SHAPE.fullmatch(text)
    return None if match is None else AgentKeyParts(prefix=match[1], secret=match[2])
