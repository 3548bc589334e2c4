"""The OpenAPI document, and a page that renders it without third-party scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from gateway.lib.errors import MethodNotAllowed
from gateway.site.help_pages import in_frame

# The heading of each group, by tag.
_GROUPS = {
    "organizations": "Organizations, people and teams",
    "vendors": "Vendors and tools",
    "credentials": "Credentials",
    "agents": "Agents, apps and devices",
    "logs": "Logs and usage",
    "alerts": "Alerts",
    "plan": "Plan",
}
_METHODS = ("get", "post", "put", "patch", "delete")


@cache
def document() -> Mapping[str, Any]:
    """The document, cached per process: routes never change at runtime."""
    # Imported lazily: it pulls in DRF's test client and takes 3 MB.
    from drf_spectacular.generators import SchemaGenerator

    generator: Any = SchemaGenerator  # untyped
    made: Mapping[str, Any] = generator().get_schema(request=None, public=True)
    return made


def schema(request: HttpRequest) -> HttpResponse:
    """GET /api/schema. Public: it describes the API and holds no data. Raises: MethodNotAllowed."""
    if request.method not in {"GET", "HEAD"}:
        raise MethodNotAllowed("GET, HEAD")
    answer = JsonResponse(document())
    answer["Cache-Control"] = "public, max-age=300"
    return answer


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """GET /docs/api: all operations, grouped by tag."""
    found = list(_operations(document()))
    tagged = [
        (tag, label, [operation for operation in found if operation["tag"] == tag]) for tag, label in _GROUPS.items()
    ]
    context = {"page_title": gettext("Management API"), "tagged": tagged, "info": document()["info"]}
    return in_frame(request, "site/api.html", context)


@require_safe
def try_page(request: HttpRequest, operation: str) -> HttpResponse:
    """GET /docs/api/<operation>/try: a form that sends one request of the reader's own. Raises: Http404."""
    made = document()
    found = next((each for each in _operations(made) if each["id"] == operation), None)
    if found is None:
        raise Http404
    raw = made["paths"][found["path"]][found["method"].lower()]
    example = raw.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    context = {
        "page_title": gettext("Try it"),
        "operation": found,
        "parameters": [each for each in raw.get("parameters", []) if each["in"] in {"path", "query"}],
        "example": None if example is None else json.dumps(example, indent=2),
        "takes_token": len(raw["security"]) > 1,
    }
    return in_frame(request, "site/api_try.html", context)


def _operations(made: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path, item in made["paths"].items():
        for method in _METHODS:
            if method in item:
                yield _operation(made, path, method, item[method])


def _operation(made: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    return {
        "id": operation["operationId"],
        "tag": operation["tags"][0],
        "method": method.upper(),
        "path": path,
        "summary": operation["summary"],
        "description": operation["description"],
        "body": list(_members(made, body)) if body else [],
        "answers": [
            {
                "status": status,
                "text": answer.get("description", ""),
                "members": list(_members(made, _schema_of(answer))) if status.startswith("2") else [],
            }
            for status, answer in operation["responses"].items()
        ],
    }


def _schema_of(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = answer.get("content", {}).get("application/json", {}).get("schema")
    return found


def _members(made: Mapping[str, Any], schema_: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    # Of an array, the members of its objects.
    resolved = _resolved(made, schema_ or {})
    if resolved.get("type") == "array":
        resolved = _resolved(made, resolved.get("items", {}))
    required = set(resolved.get("required", ()))
    for name, member in resolved.get("properties", {}).items():
        yield {
            "name": name,
            "type": _type_of(made, member),
            "required": name in required,
            "help": member.get("description", ""),
        }


def _resolved(made: Mapping[str, Any], schema_: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema_.get("$ref", "")
    if not reference:
        return schema_
    found: Mapping[str, Any] = made["components"]["schemas"][reference.rpartition("/")[2]]
    return found


def _type_of(made: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    if member.get("allOf"):
        member = member["allOf"][0]
    member = _resolved(made, member)
    kind = member.get("type", "any")
    if kind == "array":
        return f"array of {_type_of(made, member.get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
