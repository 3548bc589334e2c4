"""Requests of each kind, made by chance from good ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from bench.page_walk import page_paths
from proxy.protocol.modern.requests import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL
from proxy.protocol.modern.revision import PROTOCOL_VERSION, SERVED
from tests.api.oauth_ext.devices import GRANT_TYPE
from tests.attacks.wire import Sent
from tests.attacks.world import World, message
from tests.contracts.test_routes import TABLE
from tests.contracts.url_walk import addresses
from tests.factories.registrations import BODIES
from tests.fuzz.fragments import Chance

# These would end the people and organizations that later requests are made as.
FINAL = ("/ownership", "/membership", "/role", "/members/{user_id}")
PAGES_LEFT_OUT = ("/leave", "/delete", "/sessions", "/profile", "logout", "/owner", "/remove", "/role")
METHODS = (
    *("initialize", "tools/list", "tools/call", "ping", "notifications/initialized", "notifications/cancelled"),
    *("resources/list", "prompts/get", "completion/complete", "logging/setLevel", "server/discover", "tools/Call"),
)
MODERN_METHODS = ("server/discover", "tools/list", "tools/call", "tools/call", "subscriptions/listen", "initialize")
TOOLS = ("fake_list", "fake_write", "fake_fail", "fake__list", "globex_x", "list")
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "1999-01-01", "2026-07-28")
GRANTS = ("authorization_code", "refresh_token", "client_credentials", "password", GRANT_TYPE)
HEADERS = (
    *("x-request-id", "origin", "accept", "accept-language", "content-type", "cookie", "range", "if-none-match"),
    *("x-forwarded-for", "x-forwarded-proto", "forwarded", "mcp-protocol-version", "mcp-session-id", "idempotency-key"),
    *("sec-fetch-site", "content-encoding", "authorization", "last-event-id", "prefer", "x-http-method-override"),
    *(
        "connection",
        "upgrade",
        "expect",
        "te",
        "traceparent",
        "referer",
        "user-agent",
        "x_forwarded_for",
        "content-length",
    ),
)


@dataclass
class Maker:
    """Makes requests of a world. `ids` are those of its things."""

    world: World
    chance: Chance
    ids: Mapping[str, str]
    token: str
    pair: Mapping[str, Any]  # of a person's client
    public_id: str

    def kinds(self) -> dict[str, tuple[Callable[[], Sent], int]]:
        """Each kind with its share in thousandths."""
        return {
            "JSON-RPC": (self.rpc, 440),
            "commands": (self.command, 120),
            "token requests": (self.oauth, 200),
            "registrations": (self.registration, 40),
            "authorizations": (self.authorization, 40),
            "API": (self.api, 110),
            "page forms": (self.page, 20),
            "paths": (self.path, 30),
        }

    def bearer(self) -> str | None:
        chance = self.chance
        good = (self.world.tenant.agent_key, self.token, str(self.pair["access_token"]))
        if chance.may(0.85):
            return chance.one(good)
        return None if chance.may(0.5) else chance.header_text()

    def _sent(self, method: str, target: str, **parts: Any) -> Sent:
        chance = self.chance
        headers = list(parts.pop("headers", ()))
        while chance.may(0.12):
            headers.append((chance.one(HEADERS), chance.header_text()))
        if chance.may(0.02):
            parts["host"] = chance.header_text()
        if chance.may(0.02):
            parts["kind"] = chance.header_text()
        address = f"10.{90 + chance.random.randrange(9)}.{chance.random.randrange(250)}.{chance.random.randrange(250)}"
        return self.world.request(method, target, headers=headers, address=address, **parts)

    def _message(self) -> Any:
        chance = self.chance
        method = chance.mixed(chance.one(METHODS), 0.1)
        known: dict[str, Any] = {"name": chance.one(TOOLS), "arguments": chance.fields({"site": "hq"})}
        if method == "initialize":
            known = {"protocolVersion": chance.one(VERSIONS), "capabilities": {}, "clientInfo": {"name": "f"}}
        params = chance.mixed(chance.fields(known, ("name", "arguments", "cursor", "_meta", "task")), 0.1)
        found = message(method, params, chance.mixed(chance.one((1, "a", 0, -1)), 0.1))
        return chance.fields(found, ("id", "jsonrpc", "method", "params")) if chance.may(0.2) else found

    def _modern(self) -> Sent:
        """A request of the modern revision, whose body and headers agree or almost agree."""
        chance = self.chance
        method = chance.mixed(chance.one(MODERN_METHODS), 0.05)
        meta = {PROTOCOL_VERSION: chance.one((*SERVED, *SERVED, "2031-01-01")), CLIENT_CAPABILITIES: {}}
        more = (PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, "progressToken")
        tool = chance.one(TOOLS)
        known = {"name": tool, "arguments": {"site": "hq"}, "notifications": {}, "_meta": chance.fields(meta, more)}
        value = message(method, chance.mixed(known, 0.05), chance.mixed(chance.one((1, "a", 0)), 0.1))
        repeated = {"mcp-protocol-version": SERVED[0], "mcp-method": str(method), "mcp-name": tool}
        headers = [(name, text if chance.may(0.95) else chance.header_text()) for name, text in repeated.items()]
        kept = [each for each in headers if chance.may(0.95) and each[1].isascii() and each[1].isprintable()]
        target = chance.one(("/v1/mcp", "/v1/mcp", "/v1/fake/mcp"))
        return self._sent("POST", target, bearer=self.bearer(), content=chance.body(value), headers=kept)

    def rpc(self) -> Sent:
        chance = self.chance
        if chance.may(0.3):
            return self._modern()
        value: Any = self._message()
        if chance.may(0.05):
            value = [self._message() for _ in range(chance.random.choice((0, 1, 2, 5, 21)))]
        target = chance.one(("/v1/mcp", "/v1/mcp", "/v1/mcp", "/v1/fake/mcp", "/v1/mcp/", "/v1/mcp?tools=search"))
        headers = [("mcp-protocol-version", chance.one(VERSIONS))] if chance.may(0.2) else []
        content = chance.body(value)
        return self._sent("POST", target, bearer=self.bearer(), content=content, headers=headers)

    def command(self) -> Sent:
        chance = self.chance
        if chance.may(0.1):
            return self._sent("GET", f"/v1/{self._slug()}/cli/schema", bearer=self.bearer())
        body = chance.fields({"tool": chance.one(TOOLS), "args": chance.fields({"site": "hq"})}, ("tool", "args"))
        return self._sent("POST", f"/v1/{self._slug()}/cli", bearer=self.bearer(), content=chance.body(body))

    def _slug(self) -> str:
        return "fake" if self.chance.may(0.8) else quote(self.chance.text()[:50], safe="", errors="replace")

    def oauth(self) -> Sent:
        chance, client = self.chance, self.world.tenant.client
        path = chance.one(("/oauth/token", "/oauth/token", "/oauth/revoke", "/oauth/device_authorization"))
        known = {
            "grant_type": chance.one(GRANTS),
            "client_id": chance.one((client.client_id, self.public_id)),
            "client_secret": self.world.tenant.client_secret,
            "scope": chance.one(("mcp", "mcp:all", "mcp:fake", "admin")),
            "code": "x" * 43,
            "code_verifier": "x" * 43,
            "redirect_uri": "https://app.example/cb",
            "refresh_token": "x" * 43,
            "device_code": "x" * 43,
            "token": "x" * 43,
            "token_type_hint": "access_token",
            "resource": "http://testserver/v1/mcp",
        }
        kept = {name: value for name, value in known.items() if name == "grant_type" or chance.may(0.6)}
        form = {name: self._form_text(value) for name, value in chance.fields(kept, tuple(known)).items()}
        content = urlencode(form, doseq=True, errors="replace").encode()
        if chance.may(0.15):
            content = chance.bent(content)
        if chance.may(0.05):
            return self._sent("POST", path, content=chance.body(form))
        return self._sent("POST", path, content=content, kind="application/x-www-form-urlencoded")

    def _form_text(self, value: Any) -> Any:
        return [str(each) for each in value] if isinstance(value, list) else str(value)

    def registration(self) -> Sent:
        chance = self.chance
        known = dict(BODIES[chance.one(sorted(BODIES))])
        body = chance.fields(known, ("redirect_uris", "client_name", "grant_types", "scope", "client_uri", "contacts"))
        if isinstance(body.get("redirect_uris"), list) and chance.may(0.3):
            body["redirect_uris"] = [chance.mixed(each) for each in body["redirect_uris"]] + [chance.text()]
        return self._sent("POST", "/oauth/register", content=chance.body(body))

    def authorization(self) -> Sent:
        chance = self.chance
        known = {
            "response_type": "code",
            "client_id": self.public_id,
            "redirect_uri": "https://app.example/cb",
            "code_challenge": "x" * 43,
            "code_challenge_method": "S256",
            "state": "s",
            "scope": "mcp:fake",
            "resource": "http://testserver/v1/mcp",
            "prompt": "consent",
        }
        query = {name: self._form_text(value) for name, value in chance.fields(known, tuple(known)).items()}
        who = chance.one(("member", "admin", None))
        target = f"/oauth/authorize?{urlencode(query, doseq=True, errors='replace')}"
        return self._sent("GET", target, who=who, accept=chance.one(("text/html", "*/*")))

    def api(self) -> Sent:
        chance = self.chance
        method, path = chance.one(list(TABLE))
        row = TABLE[method, path]
        is_final = path.endswith("/{org_id}") or any(path.endswith(each) for each in FINAL)
        who = chance.one(("other_owner", "stranger", None) if is_final else ("owner", "admin", "member", None))
        ids = {
            name: quote(str(chance.mixed(value, 0.12)), safe="", errors="replace") for name, value in self.ids.items()
        }
        target = path.format(**ids)
        query = chance.fields({}, ("limit", "offset", "start", "end", "format", "range", "org_id", "cursor", "vendor"))
        if query:
            target += "?" + urlencode({name: str(value) for name, value in query.items()}, errors="replace")
        content = (
            chance.body(chance.fields(row.body, ("name", "role", "fields", "tools", "vendors"))) if row.body else b""
        )
        return self._sent(method, target, who=who, content=content)

    def page(self) -> Sent:
        chance = self.chance
        paths = [path for path in page_paths(self.ids).values() if not any(each in path for each in PAGES_LEFT_OUT)]
        target = chance.one(paths)
        secret = "a" * 32
        cookies = f"{self.world.cookie(chance.one(('admin', 'member')))}; gateway_csrf={secret}"
        headers = [("cookie", cookies), ("origin", "http://testserver")]
        if chance.may(0.3):
            target += "?" + urlencode({chance.text()[:20]: chance.text()}, errors="replace")
            return self._sent("GET", target, headers=headers, accept="text/html")
        names = (
            "action",
            "name",
            "vendor",
            "role",
            "label",
            "tools",
            "mode",
            "form_key",
            "typed_name",
            "email",
            "code",
        )
        form = {name: self._form_text(value) for name, value in chance.fields({"action": "save"}, names).items()}
        form["csrfmiddlewaretoken"] = secret
        content = urlencode(form, doseq=True, errors="replace").encode()
        kind = "application/x-www-form-urlencoded"
        return self._sent("POST", target, headers=headers, content=content, kind=kind, accept="text/html")

    def path(self) -> Sent:
        chance = self.chance
        routes = [address.template for address in addresses() if not address.route.startswith("admin/")]
        target = chance.one(routes)
        for name in ("org_id", "user_id", "vendor", "token"):
            target = target.replace(f"{{{name}}}", quote(chance.text()[:40], safe="", errors="replace"))
        if chance.may(0.5):
            bent = chance.bent(target.encode())
            target = quote(bent.replace(b"?", b""), safe="/%.{}:~") or "/"
        target = target if target.startswith("/") else f"/{target}"
        method = chance.one(("GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"))
        return self._sent(method, target, bearer=self.bearer() if chance.may(0.3) else None)
