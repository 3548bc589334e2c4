"""The management API as a script uses it: a signed-in session, JSON in, JSON out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from audit.models import AdminAuditEntry
from tests.factories.cast import Cast

JSON = "application/json"


@dataclass
class Api:
    """Calls as one of the cast. Paths begin below /api; `{org}` and `{other}` stand for the two organizations."""

    cast: Cast

    def url(self, path: str) -> str:
        """The full path."""
        return "/api" + path.format(org=self.cast.org.id, other=self.cast.other_org.id)

    def send(
        self, who: str, method: str, path: str, body: object = None, *, raw: bytes | None = None, **options: Any
    ) -> HttpResponse:
        """One request; `raw` instead of `body` for what is no JSON."""
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        options.setdefault("content_type", JSON)
        return self.cast.client(who).generic(method, self.url(path), data, **options)  # type: ignore[return-value]

    def get(self, who: str, path: str) -> Any:
        """The body of a 200."""
        answer = self.send(who, "GET", path)
        assert answer.status_code == 200, (answer.status_code, answer.content)
        return json.loads(answer.content)

    def refused(self, who: str, method: str, path: str, body: object = None, **options: Any) -> tuple[int, str]:
        """Status and error code of a refusal that has the documented shape. Spec: D1"""
        answer = self.send(who, method, path, body, **options)
        found = json.loads(answer.content)
        assert set(found) <= {"error", "message", "requestId", "fields", "retryAfter", "portalUrl"}, found
        assert found["message"]
        assert found["requestId"] == answer["X-Request-Id"]
        return answer.status_code, found["error"]

    def faults(self, who: str, method: str, path: str, body: object) -> set[str]:
        """The members that a 400 complains about."""
        answer = self.send(who, method, path, body)
        assert answer.status_code == 400, (answer.status_code, answer.content)
        return set(json.loads(answer.content).get("fields", {}))

    def events(self) -> list[str]:
        """The admin audit events of the first organization, oldest first."""
        rows = AdminAuditEntry.objects.filter(org_id=self.cast.org.id).order_by("timestamp", "id")
        return list(rows.values_list("event_type", flat=True))
