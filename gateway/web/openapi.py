"""The OpenAPI document, generated from the same gates and operations that the views run by."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from gateway.web import api_paging, idempotency
from gateway.web.chosen_org import MEMBER, ChosenOrgView
from gateway.web.gate import Gate
from gateway.web.openapi_examples import VENDOR_FIELDS, example_of
from gateway.web.openapi_names import TAGS, operation_name, schema_name
from gateway.web.operation import Operation

_SCHEMA = "#/components/schemas/"
Endpoint = tuple[str, str, str, Callable[..., Any]]


class ErrorBody(serializers.Serializer[Any]):
    """The body of every refusal. Spec: D1"""

    error = serializers.CharField(help_text="A stable code in snake_case, explained at /docs/errors.")
    message = serializers.CharField(help_text="One human-readable sentence.")
    requestId = serializers.CharField(help_text="The id that support asks for.")
    fields = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="One sentence for each field.",
    )
    retryAfter = serializers.IntegerField(required=False, help_text="Seconds, with 429.")
    portalUrl = serializers.CharField(required=False, help_text="With 402: where the plan can be renewed.")


_REFUSALS = {
    400: "A field or query parameter is missing, of the wrong type or malformed, or the body is not strict JSON.",
    401: "No session, and no valid management token.",
    409: "It already exists, or the first request with this Idempotency-Key is unfinished or its response not kept.",
    402: "The organization's plan does not include this.",
    403: "The role or the token's scope is too low, or the request came from another site.",
    404: "Not found, or it belongs to another organization.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "The Idempotency-Key was used with a different body.",
    429: "Too many requests; `Retry-After` says when to try again.",
    503: "The service is temporarily unavailable; `Retry-After` says when to try again.",
}


class GateSchema(AutoSchema):
    def _data(self) -> tuple[Gate, Operation]:
        view: Any = self.view
        return view.gates[self.method], view.operations[self.method]

    def get_operation_id(self) -> str:
        return operation_name(self.method, self.path)

    def get_summary(self) -> str:
        return self._data()[1].summary

    def get_description(self) -> str:  # type: ignore[override]
        gate, _ = self._data()
        demands = [f"Requires the role {gate.role.value}." if gate.role else "Any signed-in person."]
        demands.append(f"Management tokens need the scope {gate.token.value}." if gate.token else "Session only.")
        if gate.plan:
            demands.append("Needs an active plan.")
        if gate.entitlement:
            demands.append(f"Needs the entitlement {gate.entitlement}.")
        if gate.limit:
            demands.append(f"At most {gate.limit.limit} in {gate.limit.window_s} s.")
        if gate.organization_limit:
            together = gate.organization_limit
            demands.append(f"At most {together.limit} in {together.window_s} s for the whole organization.")
        return " ".join(demands)

    def get_override_parameters(self) -> list[Any]:
        return [*self._chosen_organization(), *self._idempotency_key(), *self._paging(), *self._query()]

    def _chosen_organization(self) -> list[Any]:
        if not isinstance(self.view, ChosenOrgView) or self.view.takes_body(self.method):
            return []
        text = "The organization. By default, the one the caller joined first."
        return [OpenApiParameter(MEMBER, str, OpenApiParameter.QUERY, description=text)]

    def _paging(self) -> list[Any]:
        if not self._data()[1].paged:
            return []
        limit = {"type": "integer", "minimum": 1, "maximum": api_paging.MAX_LIMIT}
        texts = {
            "limit": "The most items to return; `Link` then has the address of the next page. By default, all.",
            "cursor": "Where the page starts, as given in a response's `Link`.",
        }
        return [
            OpenApiParameter("limit", limit, OpenApiParameter.QUERY, description=texts["limit"]),
            OpenApiParameter("cursor", str, OpenApiParameter.QUERY, description=texts["cursor"]),
        ]

    def _query(self) -> list[Any]:
        return [
            OpenApiParameter(each.name, dict(each.schema), OpenApiParameter.QUERY, description=each.text)
            for each in self._data()[1].query
        ]

    def _idempotency_key(self) -> list[Any]:
        if self.method != "POST" or not self._data()[1].creates:
            return []
        schema = {"type": "string", "pattern": f"^{idempotency.KEY_PATTERN}$"}
        text = "A request repeated within 24 hours with the same key and body is not processed twice."
        return [OpenApiParameter(idempotency.HEADER, schema, OpenApiParameter.HEADER, description=text)]

    def get_tags(self) -> list[str]:
        module = type(self.view).__module__
        app = module.partition(".")[0]
        return [TAGS.get(module) or TAGS.get(app, app)]

    def get_auth(self) -> list[dict[str, list[str]]]:
        gate, _ = self._data()
        schemes = ["session", "managementToken"] if gate.token else ["session"]
        return [{scheme: []} for scheme in schemes]

    def get_request_serializer(self) -> Any:
        body = self._data()[1].body
        written = getattr(body, "openapi_schema", None)
        return {"application/json": written} if written else body

    def get_response_serializers(self) -> Any:
        gate, operation = self._data()
        answer: Any = operation.answer(many=True) if operation.answer and operation.many else operation.answer
        if operation.texts:
            answer = {"type": "array", "items": {"type": "string"}}
        found: dict[int | tuple[int, str], Any] = {}
        if operation.status is not None:
            found[operation.status] = OpenApiResponse(answer, "Done.")
            if operation.download:
                found[operation.status, operation.download] = OpenApiResponse({"type": "string"}, "Done.")
        statuses = {401, 413, 415, 429, 503}
        if operation.body or operation.paged or operation.query:
            statuses |= {400}
        if operation.creates:
            statuses |= {400, 409, 422}
        if self.method != "GET" or gate.role or gate.token is None:
            statuses |= {403}
        if gate.role:
            statuses |= {404}
        if gate.plan or gate.entitlement:
            statuses |= {402}
        texts = {status: _REFUSALS[status] for status in statuses} | dict(operation.refusals)
        for status, text in sorted(texts.items()):
            found[status] = OpenApiResponse(ErrorBody, text)
        return found


def only_api(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """The management API's endpoints. The OAuth and MCP routes follow published standards and are left out."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith("/api/")]


def tidy(result: dict[str, Any], generator: object, request: object, public: bool) -> dict[str, Any]:
    """Give schemas a customer's names and bodies examples; remove citations and the library's own extensions."""
    schemas = result.get("components", {}).get("schemas", {})
    for component in schemas.values():
        _tidy(component)
    names = {name: schema_name(name) for name in schemas}
    renamed: dict[str, Any] = _renamed(result, {f"{_SCHEMA}{old}": f"{_SCHEMA}{new}" for old, new in names.items()})
    parts = zip(names.values(), renamed["components"]["schemas"].values(), strict=True)
    renamed["components"]["schemas"] = dict(sorted(parts))
    _add_examples(renamed)
    return renamed


def _renamed(value: Any, references: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            name: references.get(part, part) if name == "$ref" else _renamed(part, references)
            for name, part in value.items()
        }
    return [_renamed(part, references) for part in value] if isinstance(value, list) else value


def _add_examples(result: dict[str, Any]) -> None:
    """Of each body that is JSON."""
    for item in result["paths"].values():
        for operation in item.values():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None:
                continue
            name = content["schema"].get("$ref", "").removeprefix(_SCHEMA)
            schema = result["components"]["schemas"].get(name)
            content["example"] = VENDOR_FIELDS if schema is None else example_of(name, schema)


def _tidy(schema: dict[str, Any]) -> None:
    schema.pop("x-spec-enum-id", None)
    if "enum" in schema:
        schema.pop("description", None)  # it only repeats the values
    if "description" in schema:
        schema["description"] = re.sub(r"\s*Spec:.*$", "", schema["description"], flags=re.S)
    for member in [*schema.get("properties", {}).values(), schema.get("items")]:
        if isinstance(member, dict):
            _tidy(member)
