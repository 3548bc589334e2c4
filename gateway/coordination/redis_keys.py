"""The names of keys in Redis.   docs/decisions/0052"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.coordination.hash_tags import is_tagged, tag_of_subject, tagged, untagged
from gateway.coordination.rules import Rule


class RedisKeys:
    """`with_earlier`: processes of the release before, which know epochs by untagged names, may run beside this one.

    Then both names are bumped, and an epoch's value is that of both together: a bump by either process changes it.
    """

    def __init__(self, prefix: str, *, with_earlier: bool) -> None:
        self.prefix = prefix
        self.with_earlier = with_earlier

    def window(self, rule: Rule, key: str) -> str:
        # A key for each kind of window: a changed limit never reads a ring as a log.
        kind = "rate-log" if rule.keeps_log else "rate"
        tag = tag_of_subject(key)
        return f"{self.prefix}{kind}:{rule.name}:{tagged(tag, '' if tag == key else key)}"

    def health(self, vendor: str) -> str:
        return f"{self.prefix}health:{vendor}"

    def epoch(self, name: str) -> str:
        return f"{self.prefix}epoch:{name}"

    def read(self, names: Sequence[str]) -> list[str]:
        """The keys that a value of each name is made of: all the names' own, then all earlier ones. A bump writes them.

        `names` share a tag.
        """
        prefix = f"{self.prefix}epoch:"
        own = [prefix + name for name in names]
        has_earlier = self.with_earlier and names and is_tagged(names[0])
        return own + [prefix + untagged(name) for name in names] if has_earlier else own

    def values(self, found: Sequence[bytes | None], names: Sequence[str]) -> list[str]:
        """The values of `names` out of those of `read(names)`, "" for a name never bumped."""
        own, earlier = found[: len(names)], found[len(names) :] or [None] * len(names)
        return [(value + (before or b"")).decode() if value else "" for value, before in zip(own, earlier, strict=True)]
