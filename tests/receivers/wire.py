"""One platform's side of a delivery: what it reads, what it refuses and what it answers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

JSON_ANSWER = {"Content-Type": "application/json"}
TEXT_ANSWER = {"Content-Type": "text/plain; charset=utf-8"}
Event = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """`raw` is the body as it came over the wire, `body` without its Content-Encoding."""

    method: str
    target: str
    headers: Message
    raw: bytes = b""
    body: bytes = b""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def media_type(self) -> str:
        return self.headers.get_content_type() if "Content-Type" in self.headers else ""


@dataclass(frozen=True)
class Reply:
    """`stored`: places of the batch that the platform has kept."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stored: Collection[int] = ()


class Refused(Exception):
    """The request is answered with `reply`, and nothing of it is kept."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        super().__init__(reply.status)


def in_json(status: int, value: object, stored: Collection[int] = (), **headers: str) -> Reply:
    return Reply(status, json.dumps(value).encode(), {**JSON_ANSWER, **headers}, stored)


def in_text(status: int, text: str, stored: Collection[int] = ()) -> Reply:
    return Reply(status, text.encode(), TEXT_ANSWER, stored)


class Wire(ABC):
    """`breaches` are sentences, one for each thing that the platform's documentation does not allow."""

    has_partial_failures = False

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.clock = clock
        self.breaches: list[str] = []

    @abstractmethod
    def read(self, request: Request) -> list[Event]:
        """The events of a request. Raises Refused for one that the platform refuses whole."""

    @abstractmethod
    def answer(self, events: Sequence[Event], refused: Mapping[int, int]) -> Reply:
        """`refused`: places that the platform is to refuse, with the status of each where items have one."""

    @abstractmethod
    def in_words(self, status: int) -> Reply:
        """An answer with this status in the platform's own form."""

    def breach(self, sentence: str) -> None:
        self.breaches.append(sentence)

    def refuse(self, reply: Reply, breach: str = "") -> NoReturn:
        if breach:
            self.breach(breach)
        raise Refused(reply)

    def must_be_post(self, request: Request, not_allowed: Reply) -> None:
        if request.method != "POST":
            self.refuse(not_allowed, f"{request.method} instead of POST")
