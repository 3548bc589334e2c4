"""The fake vendor with resources, templates, prompts and completion."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.vendor import FakeVendor

LISTS = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
RESOURCES: list[dict[str, Any]] = [
    {"uri": "test://static-text", "name": "Static text", "mimeType": "text/plain"},
    {"uri": "file:///notes.md", "name": "Notes"},
    {"uri": "ui://board/main", "name": "Board", "mimeType": "text/html;profile=mcp-app"},
]
TEMPLATES: list[dict[str, Any]] = [{"uriTemplate": "test://thing/{id}", "name": "Thing"}]
PROMPTS: list[dict[str, Any]] = [
    {"name": "greet", "description": "Greets.", "arguments": [{"name": "who", "required": True}]}
]
# Written by the vendor with spaces and members of its own, which have to arrive.
RAW_READ = '{"contents": [ {"uri": "%s",  "text":"caf\\u00e9", "x": 1.50} ], "more": 1e2}'


@dataclass
class ItemVendor(FakeVendor):
    """`raw`: results by method, as text, in place of the usual ones; `errors`: JSON-RPC errors by method."""

    capabilities: dict[str, Any] = field(
        default_factory=lambda: {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
    )
    lists: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {
            "resources": list(RESOURCES),
            "resourceTemplates": list(TEMPLATES),
            "prompts": list(PROMPTS),
        }
    )
    raw: dict[str, str] = field(default_factory=dict)
    errors: dict[str, dict[str, Any]] = field(default_factory=dict)

    def declared(self) -> dict[str, Any]:
        return self.capabilities

    async def _answer(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        method = body["method"]
        if method in self.errors:
            return web.json_response({"jsonrpc": "2.0", "id": body["id"], "error": self.errors[method]})
        raw = self.raw.get(method) or self._raw(method, body["params"])
        if raw is None:
            return await super()._answer(request, body)
        text = f'{{"jsonrpc":"2.0","id":{json.dumps(body["id"])},"result":{raw}}}'
        return web.Response(text=text, content_type="application/json")

    def _raw(self, method: str, params: dict[str, Any]) -> str | None:
        if method in LISTS:
            return json.dumps(self._items(LISTS[method], params))
        if method == "resources/read":
            uri: str = params["uri"]
            return RAW_READ % uri
        if method == "prompts/get":
            text = f"Hello {params.get('arguments', {}).get('who', 'nobody')}"
            return json.dumps({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
        if method == "completion/complete":
            return json.dumps({"completion": {"values": [params["argument"]["value"] + "!"], "hasMore": False}})
        return None

    def _items(self, member: str, params: dict[str, Any]) -> dict[str, Any]:
        start = int(params.get("cursor") or 0)
        items = self.lists[member]
        page: dict[str, Any] = {member: items[start : start + self.page_size]}
        if start + self.page_size < len(items):
            page["nextCursor"] = str(start + self.page_size)
        return page
