"""Looks for secrets in whatever form they could have been left somewhere: as they are, in hexadecimal, in base64."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import redis

from tests.vendors.processes import PLAIN_HTTP

SHORTEST_CHARACTERS = 12
# A cookie comes back with the answers that renew it; that is where it lives.
LEFT_OUT_HEADERS = frozenset({"set-cookie"})
T = TypeVar("T", str, bytes)
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def forms(secret: str | bytes) -> frozenset[bytes]:
    """Pure: the byte strings that give the secret away. Base64 also where it begins in the middle of something else."""
    raw = secret.encode() if isinstance(secret, str) else secret
    found = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    if isinstance(secret, str):
        found |= {quote(secret, safe="").encode(), json.dumps(secret)[1:-1].encode(), secret.encode("utf-16-le")}
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + raw)
        # Only the characters that depend on nothing but the secret.
        inner = encoded[math.ceil(offset * 8 / 6) : (offset + len(raw)) * 8 // 6]
        found |= {inner, inner.translate(_URL_SAFE)}
    return frozenset(found)


@dataclass(frozen=True)
class Answer:
    """One answer of the gateway, with everything in it that could hold a secret."""

    name: str
    status: int
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class Secret:
    """A value that nobody may find; `minted_in` is the one answer that shows it."""

    name: str
    value: str | bytes = field(repr=False)
    minted_in: Answer | None = None


@dataclass
class Hoard:
    """Every secret that was entered or minted."""

    secrets: list[Secret] = field(default_factory=list)

    def add(self, name: str, value: T, minted_in: Answer | None = None) -> T:
        """The value, which is searched for from now on."""
        assert len(value) >= SHORTEST_CHARACTERS, f"{name} is too short to be told from chance"
        if all(value != known.value for known in self.secrets):
            self.secrets.append(Secret(name, value, minted_in))
        return value

    def found_in(self, places: Iterable[tuple[str, bytes]]) -> list[str]:
        """`secret in place` for each that is there; the value itself is not repeated."""
        wanted = [(secret.name, form) for secret in self.secrets for form in forms(secret.value)]
        return sorted({f"{name} in {place}" for place, content in places for name, form in wanted if form in content})

    def found_in_answers(self, answers: Iterable[Answer]) -> list[str]:
        """The same for answers; each may show what it mints."""
        return [
            line
            for answer in answers
            for secret in self.secrets
            if secret.minted_in is not answer
            for line in Hoard([secret]).found_in([(f"the answer to {answer.name}", answer.content)])
        ]


class Transcript:
    """Every answer of the gateway at `origin`, taken down by the clients themselves."""

    def __init__(self, origin: str, hoard: Hoard) -> None:
        self._origin, self._hoard = origin, hoard
        self.answers: list[Answer] = []

    @contextlib.contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """A browser, or a script: it keeps cookies, and what comes back is taken down."""
        hooks = {"response": [self._take_down]}
        with httpx.Client(base_url=self._origin, **PLAIN_HTTP, timeout=120.0, event_hooks=hooks) as client:
            yield client

    @property
    def last(self) -> Answer:
        """The newest answer."""
        return self.answers[-1]

    def _take_down(self, response: httpx.Response) -> None:
        response.read()
        location = response.headers.get("Location", "")
        if location.startswith(f"{self._origin}/oidc/callback/"):
            code = httpx.URL(location).params.get("code")
            if code:
                self._hoard.add("an authorization code", code)
        if not str(response.url).startswith(self._origin):
            return  # the identity provider's pages are its own
        for name, value in response.cookies.items():
            self._hoard.add(f"the cookie {name}", value)
        headers = [f"{key}: {value}" for key, value in response.headers.items() if key not in LEFT_OUT_HEADERS]
        content = "\n".join(headers).encode() + b"\n\n" + response.content
        name = f"{response.request.method} {response.url.path} ({response.status_code})"
        self.answers.append(Answer(name, response.status_code, content))


def database_places(dump: Mapping[str, list[tuple[Any, ...]]]) -> Iterator[tuple[str, bytes]]:
    """Every value of every row, as bytes; what sessions hold also unpacked."""
    for table, rows in dump.items():
        for row in rows:
            for value in row:
                content = _as_bytes(value)
                yield f"table {table}", content
                if table == "django_session" and isinstance(value, str):
                    yield f"table {table} (unpacked)", _unpacked(value)


def _as_bytes(value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, dict | list):
        return json.dumps(value, default=str).encode()
    if isinstance(value, datetime):
        return value.isoformat().encode()
    return str(value).encode()


def _unpacked(session_data: str) -> bytes:
    """The content of a session: signed, perhaps compressed, not encrypted."""
    packed = session_data.partition(":")[0].lstrip(".")
    with contextlib.suppress(ValueError, zlib.error):
        decoded = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        return zlib.decompress(decoded) if session_data.startswith(".") else decoded
    return b""


def file_places(folder: Path, *, but: frozenset[str]) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder, but those of a name in `but`."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in but:
            yield f"file {path.relative_to(folder)}", path.read_bytes()


def redis_places(url: str) -> Iterator[tuple[str, bytes]]:
    """Every key of a Redis with all that it holds."""
    with contextlib.closing(redis.Redis.from_url(url)) as client:
        readers: dict[bytes, Callable[[bytes], Any]] = {
            b"string": client.get,
            b"hash": client.hgetall,
            b"zset": lambda key: client.zrange(key, 0, -1),
            b"list": lambda key: client.lrange(key, 0, -1),
            b"set": client.smembers,
            b"stream": lambda key: [
                part for _, fields in client.xrange(key) for pair in fields.items() for part in pair
            ],
        }
        for key in client.scan_iter("*"):
            yield "a key of Redis", key
            kind = bytes(client.type(key))  # type: ignore[arg-type]  # no response is decoded
            if kind != b"none":  # it has expired meanwhile
                yield f"Redis at {key.decode(errors='replace')[:60]}", b"\n".join(_parts(readers[kind](key)))


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    for part in value if isinstance(value, list | set | tuple) else [value]:
        yield _as_bytes(part)
