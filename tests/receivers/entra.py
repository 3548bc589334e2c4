"""Microsoft Entra's token endpoint: POST /TENANT/oauth2/v2.0/token for client credentials with a shared secret.

Sources:
https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow (form, answer, errors)
https://learn.microsoft.com/entra/identity-platform/reference-error-codes (AADSTS numbers)
https://learn.microsoft.com/en-us/azure/azure-monitor/logs/tutorial-logs-ingestion-code (the scope, with two slashes)
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from urllib.parse import parse_qsl

from tests.receivers.wire import Reply, Request, in_json

SCOPES = {"https://monitor.azure.com//.default", "https://monitor.azure.com/.default"}
FIELDS = {"client_id", "client_secret", "scope", "grant_type"}


class Entra:
    """Issues tokens of `lifetime_s`; `issued` holds each with the time it ends."""

    def __init__(
        self,
        tenant: str,
        client: tuple[str, str],
        lifetime_s: int,
        clock: Callable[[], datetime],
        breach: Callable[[str], None],
    ) -> None:
        self.tenant, self.client, self.lifetime_s, self._clock, self._breach = tenant, client, lifetime_s, clock, breach
        self.issued: dict[str, datetime] = {}

    def is_valid(self, token: str) -> bool:
        return token in self.issued and self.issued[token] > self._clock()

    def answer(self, request: Request) -> Reply:
        if request.method != "POST" or request.media_type != "application/x-www-form-urlencoded":
            self._breach(f"{request.method} with {request.media_type or 'no type'} for a token")
            return self._error(400, "invalid_request", 900144)
        if "Content-Encoding" in request.headers or request.query:
            self._breach("a request for a token is neither compressed nor in the address")
        pairs = parse_qsl(request.body.decode(errors="replace"), keep_blank_values=True, strict_parsing=False)
        form = dict(pairs)
        if len(pairs) != len(form) or form.keys() != FIELDS:
            self._breach(f"the form has the fields {[name for name, _ in pairs]}")
            return self._error(400, "invalid_request", 900144)
        return self._judged(request.path, form)

    def _judged(self, path: str, form: dict[str, str]) -> Reply:
        if form["grant_type"] != "client_credentials":
            self._breach(f"grant_type {form['grant_type']}")
            return self._error(400, "unsupported_grant_type", 70003)
        if form["scope"] not in SCOPES:
            self._breach(f"scope {form['scope']}")
            return self._error(400, "invalid_scope", 70011)
        if path != f"/{self.tenant}/oauth2/v2.0/token":
            return self._error(400, "invalid_request", 90002)
        if form["client_id"] != self.client[0]:
            return self._error(400, "unauthorized_client", 700016)
        if form["client_secret"] != self.client[1]:
            return self._error(401, "invalid_client", 7000215)
        token = f"eyJ.{secrets.token_urlsafe(24)}"
        self.issued[token] = self._clock() + timedelta(seconds=self.lifetime_s)
        return in_json(200, {"token_type": "Bearer", "expires_in": self.lifetime_s, "access_token": token})

    def _error(self, status: int, error: str, number: int) -> Reply:
        words = f"AADSTS{number}: said by the receiver.\r\nTrace ID: 255d1aef-8c98-452f-ac51-23d051240864"
        at = f"{self._clock():%Y-%m-%d %H:%M:%SZ}"
        return in_json(status, {"error": error, "error_description": words, "error_codes": [number], "timestamp": at})
