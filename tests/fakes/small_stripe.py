"""The part of the payment provider's API that checkout, portal, cancellation and reconciliation ask, in threads of the
test. It checks what it is sent, and breaks when it is told to.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

JsonObject = dict[str, Any]


class Refused(Exception):
    """An error of the API."""

    def __init__(self, status: int, code: str, param: str = "", kind: str = "invalid_request_error") -> None:
        super().__init__(code)
        self.status = status
        self.body = {
            "error": {"type": kind, "code": code, "param": param, "message": "Words of the provider: secret-word"}
        }


@dataclass
class Asked:
    """One request, as it came."""

    method: str
    path: str
    fields: dict[str, str]
    headers: dict[str, str]


@dataclass
class SmallStripe:
    """`respond` replaces the whole answer: (status, headers, body); `before` runs in the thread of a request."""

    url: str = ""
    now: float | None = None
    customers: dict[str, JsonObject] = field(default_factory=dict)
    sessions: dict[str, JsonObject] = field(default_factory=dict)
    subscriptions: dict[str, JsonObject] = field(default_factory=dict)
    coupons: dict[str, JsonObject] = field(default_factory=dict)
    promotion_codes: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    respond: Callable[[Asked], tuple[int, dict[str, str], bytes] | None] = lambda asked: None
    before: Callable[[Asked], None] = lambda asked: None
    _replies: dict[str, tuple[dict[str, str], JsonObject]] = field(default_factory=dict)
    _under_way: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, method: str, path: str) -> int:
        """How often it was asked for exactly this."""
        return len([each for each in self.asked if (each.method, each.path) == (method, path)])

    def answer(self, asked: Asked) -> JsonObject:
        """Raises: Refused."""
        key = asked.headers.get("idempotency-key", "")
        if asked.method != "POST" or not key:
            with self._lock:
                return self._route(asked)
        with self._lock:
            if key in self._under_way:
                raise Refused(409, "idempotency_key_in_use", kind="idempotency_error")
            if key in self._replies:
                fields, reply = self._replies[key]
                if fields != asked.fields:
                    raise Refused(400, "", kind="idempotency_error")
                return reply
            self._under_way.add(key)
        try:
            self.before(asked)
            with self._lock:
                reply = self._route(asked)
                self._replies[key] = (asked.fields, json.loads(json.dumps(reply)))
                return reply
        finally:
            with self._lock:
                self._under_way.discard(key)

    def _route(self, asked: Asked) -> JsonObject:
        parts = [unquote(part) for part in asked.path.split("/")[2:]]
        match (asked.method, *parts):
            case ("POST", "customers"):
                return self._add(self.customers, "cus", asked, {"object": "customer"})
            case ("POST", "checkout", "sessions"):
                return self._checkout(asked)
            case ("POST", "checkout", "sessions", key, "expire"):
                found = self._found(self.sessions, key, "id")
                if found["status"] != "open":
                    raise Refused(400, "checkout_session_not_open")
                found.update(status="expired", url=None)
                return found
            case ("GET", "checkout", "sessions", key):
                return self._found(self.sessions, key, "id")
            case ("GET", "checkout", "sessions"):
                return self._list(self.sessions, asked)
            case ("POST", "billing_portal", "sessions"):
                self._customer(asked)
                return {"id": "bps_1", "object": "billing_portal.session", "url": f"{self.url}/portal/bps_1"}
            case ("GET", "subscriptions"):
                self._customer(asked)
                return self._list(self.subscriptions, asked)
            case ("DELETE", "subscriptions", key):
                found = self._found(self.subscriptions, key, "id")
                if found["status"] == "canceled":
                    raise Refused(404, "resource_missing", "id")
                found["status"] = "canceled"
                return found
            case ("GET", "promotion_codes"):
                key = self.promotion_codes.get(asked.fields["code"])
                return {"object": "list", "data": [{"id": key}] if key else [], "has_more": False}
            case ("GET", "coupons", key):
                return self._found(self.coupons, key, "coupon")
        raise Refused(404, "")

    def _checkout(self, asked: Asked) -> JsonObject:
        self._customer(asked)
        if asked.fields.get("discounts[0][coupon]", "ok") == "used-up":
            raise Refused(400, "coupon_expired", "discounts[0][coupon]")
        made = self._add(self.sessions, "cs", asked, {"object": "checkout.session", "status": "open"})
        made["url"] = f"{self.url}/pay/{made['id']}"
        made["customer"] = asked.fields["customer"]
        return made

    def _add(self, table: dict[str, JsonObject], prefix: str, asked: Asked, members: JsonObject) -> JsonObject:
        made = {"id": f"{prefix}_{len(table) + 1}", **members, "fields": asked.fields}
        table[made["id"]] = made
        return made

    def _customer(self, asked: Asked) -> None:
        key = asked.fields["customer"]
        if key not in self.customers:
            raise Refused(400, "resource_missing", "customer")

    def _found(self, table: dict[str, JsonObject], key: str, param: str) -> JsonObject:
        if key not in table:
            raise Refused(404, "resource_missing", param)
        return table[key]

    def _list(self, table: dict[str, JsonObject], asked: Asked) -> JsonObject:
        wanted, status = asked.fields.get("customer"), asked.fields.get("status")
        rows = [row for row in table.values() if row["customer"] == wanted]
        if status not in (None, "all"):
            rows = [row for row in rows if row["status"] == status]
        elif status is None:
            rows = [row for row in rows if row["status"] != "canceled"]
        after = asked.fields.get("starting_after")
        start = [row["id"] for row in rows].index(after) + 1 if after else 0
        page = rows[start : start + int(asked.fields.get("limit", 10))]
        return {"object": "list", "data": page, "has_more": start + len(page) < len(rows)}


@contextlib.contextmanager
def small_stripe() -> Iterator[SmallStripe]:
    """Served at a port of this host until the block ends."""
    provider = SmallStripe()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing is printed."""

        def handle_one(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            fields = dict(parse_qsl(parts.query, keep_blank_values=True)) | dict(
                parse_qsl(body, keep_blank_values=True)
            )
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, parts.path, fields, headers)
            provider.asked.append(asked)
            told = provider.respond(asked)
            if told is not None:
                self._send(*told)
                return
            try:
                status, found = 200, provider.answer(asked)
            except Refused as refusal:
                status, found = refusal.status, refusal.body
            self._send(status, {"Content-Type": "application/json"}, json.dumps(found).encode())

        do_GET = do_POST = do_DELETE = handle_one  # noqa: N815

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in {"Date": formatdate(provider.now, usegmt=True), **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
