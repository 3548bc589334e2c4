"""All documents of /docs in their order. Each is rendered once for each process, when it is first opened."""

from __future__ import annotations

import posixpath
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils import translation

from gateway.site.help.client_documents import markdown_of
from gateway.site.help.figures import filled
from gateway.site.help.markdown import Rendered, Resolve, render
from proxy.pages.client_guides import guides

_DOCS = Path("docs")
_CONTENTS = _DOCS / "guide" / "contents.toml"
_CLIENTS = "clients/"


@dataclass(frozen=True, eq=False)
class Document:
    """`name` is its address below /docs/; `source` is Markdown, whose links `resolve` leads to addresses."""

    name: str
    group: str
    source: str
    resolve: Resolve

    @property
    def title(self) -> str:
        return self.source.partition("\n")[0].removeprefix("# ")

    @property
    def url(self) -> str:
        return reverse("docs-document", args=[self.name])

    @cached_property
    def content(self) -> Rendered:
        # The documents are English, and so are the templates inside them.
        with translation.override("en"):
            return render(self.source, self.resolve)


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    documents: tuple[Document, ...]


@dataclass(frozen=True, slots=True)
class Library:
    groups: tuple[Group, ...]

    @property
    def documents(self) -> tuple[Document, ...]:
        return tuple(document for group in self.groups for document in group.documents)

    def find(self, name: str) -> Document | None:
        return next((each for each in self.documents if each.name == name), None)

    def neighbours(self, document: Document) -> tuple[Document | None, Document | None]:
        """The documents before and after it."""
        every = self.documents
        at = every.index(document)
        return every[at - 1] if at else None, every[at + 1] if at + 1 < len(every) else None


@lru_cache(maxsize=1)
def library() -> Library:
    sources = _Sources(tomllib.loads((settings.BASE_DIR / _CONTENTS).read_text(encoding="utf-8")))
    with translation.override("en"):
        return Library(tuple(Group(title, tuple(sources.documents(title))) for title in sources.titles))


class _Sources:
    """The Markdown of all documents. `contents` is the file that orders them."""

    def __init__(self, contents: Mapping[str, Any]) -> None:
        self._entries: dict[str, list[dict[str, str]]] = {
            group["title"]: [_entry(each) for each in group["documents"]] for group in contents["group"]
        }
        self._names = {
            entry["file"]: entry["name"] for entries in self._entries.values() for entry in entries if "file" in entry
        }

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def documents(self, title: str) -> Iterator[Document]:
        for entry in self._entries[title]:
            if entry["name"] == f"{_CLIENTS}*":
                yield from self._of_clients(title)
                continue
            file = entry["file"]
            source = filled((settings.BASE_DIR / file).read_text(encoding="utf-8"))
            yield Document(entry["name"], title, source, partial(self._address, file))

    def _of_clients(self, title: str) -> Iterator[Document]:
        for guide in guides():
            source = markdown_of(guide.filled(settings.BASE_URL, ""))
            yield Document(f"{_CLIENTS}{guide.slug}", title, source, _as_written)

    def _address(self, file: str, target: str) -> str | None:
        """None for a file that is part of the source code and no document."""
        if target.startswith(("https://", "http://", "/", "#")):
            return target
        path, _, part = target.partition("#")
        name = self._names.get(posixpath.normpath(posixpath.join(posixpath.dirname(file), path)))
        if name is None:
            return None
        address = reverse("docs-document", args=[name])
        return f"{address}#{part}" if part else address


def _as_written(target: str) -> str | None:
    return target


def _entry(written: str | Mapping[str, str]) -> dict[str, str]:
    """A name stands for the file of that name in docs/guide."""
    if not isinstance(written, str):
        return dict(written)
    return {"name": written, "file": (_DOCS / "guide" / f"{written}.md").as_posix()}
