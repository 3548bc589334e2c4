"""A request to a receiver, without a client library that would put it right."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.receivers import Receiver


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: http.client.HTTPMessage

    def json(self) -> Any:
        return json.loads(self.body)


def send(
    receiver: Receiver, path: str, body: bytes, headers: dict[str, str], method: str = "POST", timeout_s: float = 5.0
) -> Answer:
    connection = http.client.HTTPConnection(urlsplit(receiver.url).netloc, timeout=timeout_s)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Answer(response.status, response.read(), response.headers)
    finally:
        connection.close()


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()
