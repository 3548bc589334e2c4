"""How to set up each client: one file of `clients/` each. Secrets appear only as names of variables. Spec: ux 6"""

from __future__ import annotations

import base64
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from gateway.lib.translated import translated

_FOLDER = Path(__file__).with_name("clients")
# Shown while the person can use no vendor.
EXAMPLE_VENDOR = "<vendor>"


@dataclass(frozen=True, slots=True)
class ClientGuide:
    """One client. Its texts may name {mcp_url}, {base_url} and {vendor}; `link` installs the server in one click."""

    slug: str
    client: str
    group: str
    # A sign-in in the browser, an agent key, or a client secret.
    needs: Literal["browser", "key", "secret"]
    where: str
    code: str
    steps: tuple[str, ...]
    # How a failed sign-in or an old key is replaced.
    again: str
    # The evidence for the guide: it was run against this service, taken from documentation, or neither.
    checked: Literal["run", "documentation", "none"]
    checked_on: date | None = None
    version: str = ""
    source: str = ""
    link: str = ""
    link_config: str = ""
    # Its servers call the address, so an address of this computer or network is no use.
    needs_public_address: bool = False

    def filled(self, base_url: str, vendor: str) -> ClientGuide:
        """The guide for one service. `vendor`: the slug in the example of a command."""
        words = {"{mcp_url}": f"{base_url}/v1/mcp", "{base_url}": base_url, "{vendor}": vendor or EXAMPLE_VENDOR}
        config = _replaced(self.link_config, words)
        forms = {"{base64}": quote(base64.b64encode(config.encode()).decode()), "{quoted}": quote(config)}
        texts = {name: getattr(self, name) for name in self.__slots__}
        texts |= {"code": _replaced(self.code.strip("\n"), words), "link": _replaced(self.link, forms)}
        texts |= {name: translated(texts[name]) for name in ("client", "group", "where", "again")}
        texts["steps"] = tuple(_replaced(translated(step), words) for step in self.steps)
        return ClientGuide(**texts)


@lru_cache(maxsize=1)
def guides() -> tuple[ClientGuide, ...]:
    """In the order of the files. The first is for people who have not chosen."""
    return tuple(_read(path) for path in sorted(_FOLDER.glob("*.toml")))


def guide(slug: str) -> ClientGuide | None:
    return next((each for each in guides() if each.slug == slug), None)


def by_group() -> list[tuple[str, Sequence[ClientGuide]]]:
    return [(name, list(found)) for name, found in groupby(guides(), key=lambda each: each.group)]


def _read(path: Path) -> ClientGuide:
    facts = tomllib.loads(path.read_text(encoding="utf-8"))
    facts["steps"] = tuple(facts["steps"])
    # The number in front is the order.
    return ClientGuide(slug=path.stem.partition("-")[2], **facts)


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
