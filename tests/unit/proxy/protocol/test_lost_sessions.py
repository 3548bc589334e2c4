"""Refusals that say that nothing was run because the session is unknown, and others that only sound like it."""

from __future__ import annotations

import json

import pytest

from proxy.protocol.lost_sessions import SessionState, session_state
from proxy.protocol.replies import refusal

DEEP = 100_000
UNKNOWN, UNCERTAIN, KNOWN = SessionState.UNKNOWN, SessionState.UNCERTAIN, SessionState.KNOWN
OURS = 7


def error(code: int, message: str, message_id: object = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": message}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        # Python SDK, TypeScript and C# SDKs, Swift SDK, servers after the TypeScript examples
        (404, error(-32600, "Session not found", "server-error"), UNKNOWN),
        (404, error(-32600, "Not Found: Session has been terminated", "server-error"), UNKNOWN),
        (404, error(-32600, "Not Found: Invalid or expired session ID", "server-error"), UNKNOWN),
        (404, error(-32001, "Session not found"), UNKNOWN),
        (400, error(-32000, "Bad Request: No valid session ID provided"), UNKNOWN),
        (400, error(-32000, "Bad Request: Server not initialized"), UNKNOWN),
        # the transport's own 404
        (404, b"", UNKNOWN),
        (404, b"session not found", UNKNOWN),
        (404, b'{"error":"Session not found"}', UNKNOWN),
        # an error that answers the request itself, or says otherwise, may come from a tool that ran
        (404, error(-32600, "Session not found", OURS), UNCERTAIN),
        (404, error(-32000, "checkout session cs_1 was created but could not be confirmed"), UNCERTAIN),
        (404, error(-32000, "There is no such order"), UNCERTAIN),
        (404, error(-32601, "Method not found", OURS), KNOWN),
        (404, error(-32602, "Unknown tool", OURS), KNOWN),
        (400, error(-32000, "checkout session cs_1 was created but could not be confirmed"), UNCERTAIN),
        (400, error(-32600, "Session not found, but created"), UNCERTAIN),
        (400, error(-32000, "The training session is full", OURS), UNCERTAIN),
        (400, error(-32000, "No valid session ID provided", OURS), UNCERTAIN),
        (400, error(5, "Session not found"), UNCERTAIN),
        (400, error(-32600, "Bad Request: Missing session ID"), UNCERTAIN),
        (400, b"Session expired", UNCERTAIN),
        (400, b'{"error":"unknown session"}', UNCERTAIN),
        (400, b"\xff session", UNCERTAIN),
        (400, error(-32602, "Invalid arguments", OURS), KNOWN),
        (400, error(-32602, "Unsupported protocol version"), KNOWN),
        (400, b"", KNOWN),
        (400, b"<html>Bad Request</html>", KNOWN),
        (400, b"x" * 1_000 + b"session", KNOWN),
        (400, b"[" * DEEP, KNOWN),
        (200, error(-32600, "Session not found"), KNOWN),
        (401, b"session", KNOWN),
        (403, b"session", KNOWN),
        (500, b"Session not found", KNOWN),
    ],
)
def test_what_a_refusal_says_of_the_session(status: int, body: bytes, word: SessionState) -> None:
    assert session_state(status, body, refusal(body, OURS)) is word


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (error(-32602, "Invalid arguments", OURS), -32602),
        (error(-32022, "Unsupported version"), -32022),
        (error(-32600, "Bad Request", "server-error"), -32600),
        (error(-32602, "Invalid arguments", OURS + 1), None),  # an answer to something else
        (b'{"jsonrpc":"2.0","id":7,"result":{}}', None),
        (b'{"error":{"code":-32602,"message":"no JSON-RPC"}}', None),
        (b"", None),
        (error(-32602, "x" * 64 * 1024, OURS), None),
        (b"\xff", None),
    ],
)
def test_the_json_rpc_error_in_a_refusal(body: bytes, code: int | None) -> None:
    found = refusal(body, OURS)
    assert (found.code if found else None) == code
