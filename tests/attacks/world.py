"""Two organizations, their people and agents, a vendor that notes what it is asked, and the wire to the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from django.conf import LazySettings, settings

from tests.api.proxy.conftest import access_token
from tests.attacks.wire import Header, Sent, Wire
from tests.factories.all_rows import changed, rows
from tests.factories.cast import Cast, signed_in_session
from tests.factories.tenant import Tenant
from tests.fakes.vendor import FakeVendor

LIST = {"name": "fake_list", "arguments": {}}
CALL_ROW = "audit.RequestAuditEntry"
ADMIN_ROW = "audit.AdminAuditEntry"
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def message(method: str, params: object = None, message_id: object = 1) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": message_id, "method": method, "params": {} if params is None else params}


@dataclass
class World:
    """`tenant` is connected to the vendor `fake`, `other` to nothing. `address` is the attacker's."""

    cast: Cast
    tenant: Tenant
    other: Tenant
    vendor: FakeVendor
    wire: Wire
    settings: LazySettings
    monkeypatch: pytest.MonkeyPatch
    address: str
    looks: int = 0
    _cookies: dict[str, str] = field(default_factory=dict)

    @property
    def org(self) -> str:
        """The path of the first organization's API."""
        return f"/api/orgs/{self.cast.org.id}"

    @property
    def other_org(self) -> str:
        """That of the second."""
        return f"/api/orgs/{self.cast.other_org.id}"

    def token(self, scope: str = "mcp:all") -> str:
        """An access token of the first organization's service client."""
        return access_token(self.tenant, scope)

    @contextmanager
    def watched(self, *written: str, asks_vendor: bool = False) -> Iterator[None]:
        """Exactly these models' rows are written inside the block; no vendor is asked unless `asks_vendor`."""
        self.looks += 1
        self.wire.settle()
        before, asked = rows(), self.asked()
        yield
        self.wire.settle()
        found = changed(before, rows())
        assert found == set(written), f"written: {sorted(found)}; the row says: {sorted(written)}"
        assert (self.asked() != asked) == asks_vendor, f"the vendor was asked: {self.asked()}, before: {asked}"

    def asked(self) -> tuple[Any, ...]:
        """All that came to the vendor."""
        return (dict(self.vendor.seen), len(self.vendor.bodies), len(self.vendor.deleted))

    def request(self, method: str, target: str, **parts: Any) -> Sent:
        """A request, by `bearer`, as `who`, with a body as `body` (JSON), `form`, `content` or `chunks`."""
        headers: list[Header] = [("host", parts.get("host", "testserver")), ("accept", parts.get("accept", "*/*"))]
        content, kind = parts.get("content", b""), parts.get("kind", JSON)
        if "form" in parts:
            form = parts["form"]
            content, kind = (form if isinstance(form, str) else urlencode(form, doseq=True)).encode(), FORM
        elif "body" in parts:
            content = json.dumps(parts["body"]).encode()
        if (content or "chunks" in parts) and kind:
            headers.append(("content-type", kind))
        if parts.get("bearer") is not None:
            headers.append(("authorization", f"Bearer {parts['bearer']}"))
        if parts.get("who") is not None:
            headers.append(("cookie", self.cookie(parts["who"])))
        headers += parts.get("headers", ())
        address = parts.get("address", self.address)
        return Sent(method, target, headers, content, parts.get("chunks"), address)

    def send(self, method: str, target: str, **parts: Any) -> httpx.Response:
        """The answer to one request; see `request`."""
        return self.wire.send(self.request(method, target, **parts))

    def rpc(self, bearer: str | None, method: str, params: object = None, **parts: Any) -> httpx.Response:
        """One JSON-RPC request to the unified endpoint, or to `target`."""
        target = parts.pop("target", "/v1/mcp")
        return self.send("POST", target, bearer=bearer, body=message(method, params), **parts)

    def call(self, bearer: str | None, tool: str = "fake_list", **parts: Any) -> httpx.Response:
        """One tools/call."""
        return self.rpc(bearer, "tools/call", {"name": tool, "arguments": {}}, **parts)

    def cli(self, bearer: str | None, tool: object = "list", vendor: str = "fake", **parts: Any) -> httpx.Response:
        """One command."""
        return self.send("POST", f"/v1/{vendor}/cli", bearer=bearer, body={"tool": tool}, **parts)

    def post(self, path: str, form: dict[str, Any] | str, **parts: Any) -> httpx.Response:
        """A form to the token endpoints."""
        return self.send("POST", path, form=form, **parts)

    def forget_sessions(self) -> None:
        """People get new ones."""
        self._cookies.clear()

    def cookie(self, who: str) -> str:
        """The cookie header of a session of this person."""
        if who not in self._cookies:
            self._cookies[who] = f"{settings.SESSION_COOKIE_NAME}={signed_in_session(self.cast.people[who])}"
        return self._cookies[who]


def result(answer: httpx.Response) -> Any:
    """The result of a call that is answered 200."""
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]
