"""A caller of the demo vendor in memory, over the same JSON-RPC a gateway speaks."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

API_KEY = "demo-unit-tests-0001"
ORIGIN = "http://127.0.0.1:9100"
PROTOCOL_VERSION = "2025-11-25"


class VendorSession:
    """One initialized session under `api_key`; enter it once per application."""

    def __init__(self, app: Starlette, api_key: str = API_KEY) -> None:
        self.http = TestClient(app, base_url=ORIGIN, client=("127.0.0.1", 50000))
        self.api_key = api_key
        self.session_id = ""
        self._last_id = 0

    def __enter__(self) -> VendorSession:
        self.http.__enter__()
        self.initialize(self.api_key)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.__exit__(kind, error, trace)

    def initialize(self, api_key: str) -> None:
        """From here on calls are made under `api_key`, in a session of its own."""
        self.api_key, self.session_id = api_key, ""
        client = {"name": "unit tests", "version": "1"}
        parameters = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        response = self.post("initialize", parameters)
        assert response.status_code == 200, response.text
        self.session_id = response.headers["mcp-session-id"]
        accepted = self.http.post(
            "/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=self.headers()
        )
        assert accepted.status_code == 202

    def headers(self) -> dict[str, str]:
        """The headers of every message of the session."""
        fixed = {"Accept": "application/json, text/event-stream", "X-Api-Key": self.api_key}
        session = {"Mcp-Session-Id": self.session_id, "Mcp-Protocol-Version": PROTOCOL_VERSION}
        return {**fixed, **(session if self.session_id else {})}

    def post(self, method: str, parameters: dict[str, Any], **headers: str) -> Any:
        """The HTTP response to one request."""
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": parameters}
        return self.http.post("/mcp", json=message, headers={**self.headers(), **headers})

    def messages(self, method: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        """Everything on the event stream that answers one request; the answer itself comes last."""
        response = self.post(method, parameters)
        assert response.headers["content-type"].startswith("text/event-stream"), response.text
        lines = [line.removeprefix("data:").strip() for line in response.text.splitlines() if line.startswith("data:")]
        return [json.loads(line) for line in lines if line]

    def tools(self) -> list[dict[str, Any]]:
        """The definitions of all tools."""
        tools: list[dict[str, Any]] = self.messages("tools/list", {})[-1]["result"]["tools"]
        return tools

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool call, failed or not."""
        result: dict[str, Any] = self.messages("tools/call", {"name": tool, "arguments": arguments})[-1]["result"]
        return result

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that succeeds."""
        result = self.call(tool, **arguments)
        assert not result["isError"], result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        content: dict[str, Any] = result["structuredContent"]
        return content

    def refusal(self, tool: str, **arguments: Any) -> str:
        """The text of a call that fails."""
        result = self.call(tool, **arguments)
        assert result["isError"], result
        text: str = result["content"][0]["text"]
        return text
