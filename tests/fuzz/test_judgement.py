"""Words of our inside in an answer are a leak, unless the request had them."""

from __future__ import annotations

import httpx
import pytest

from tests.attacks.wire import Sent
from tests.fuzz.run import fault_of

pytestmark = pytest.mark.one_back_end
TIMES = dict.fromkeys(("X-Auth-Ms", "X-Session-Ms", "X-Vendor-Ms", "X-Total-Ms"), "0")


def answered(message_id: str) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": message_id, "error": {"code": -32600, "message": "No."}}
    headers = {"X-Request-Id": "1", "Cache-Control": "no-store", **TIMES}
    return httpx.Response(400, json=body, headers=headers, extensions={"path": "/v1/mcp"})


def test_an_answer_may_have_the_words_of_its_request_and_no_others() -> None:
    answer = answered("gateway.sqlite3")
    assert fault_of(Sent("POST", "/v1/mcp", body=b'{"id": "gateway.sqlite3"}'), answer) == ""
    assert "another shape" in fault_of(Sent("POST", "/v1/mcp", body=b'{"id": "a"}'), answer)
