"""The ways in which the API can be told to answer otherwise than it should."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

KINDS = ("slow", "never", "status", "garbage", "redirect", "cut", "huge", "list", "null")
LED_TO = "/where-a-redirect-led"
FOR_EVER_S = 3_600.0


@dataclass
class Fault:
    """For `times` requests whose path begins with `path`. `works`: the request is carried out, its answer is not sent.

    `slow` waits `seconds` and then answers well.
    """

    kind: str
    times: int = 1
    path: str = "/v1/"
    method: str = ""
    status: int = 503
    seconds: float = 0.0
    works: bool = False

    def meets(self, method: str, path: str) -> bool:
        return path.startswith(self.path) and self.method in ("", method)

    @property
    def answers_well(self) -> bool:
        return self.kind == "slow"

    async def wait(self) -> None:
        if self.kind in ("slow", "never"):
            await asyncio.sleep(FOR_EVER_S if self.kind == "never" else self.seconds)

    def answer(self) -> Response:
        """Instead of the right one."""
        kind = "application/json"
        if self.kind == "status":
            body = b'{"error": {"message": "An unknown error occurred", "type": "api_error"}}'
            return Response(body, self.status, media_type=kind)
        if self.kind == "redirect":
            return RedirectResponse(LED_TO, 307)
        if self.kind == "cut":
            return _Cut(b'{"id": "', media_type=kind)
        if self.kind == "huge":
            return Response(b'{"id": "' + b"x" * (4 * 1024 * 1024) + b'"}', media_type=kind)
        bodies = {"list": b"[1, 2, 3]", "null": b"null"}
        return Response(bodies.get(self.kind, b"<html>\x00\xff maintenance</html>"), media_type=kind)


class _Cut(Response):
    """Promises more than it sends, whereupon the server closes the connection."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"100000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
