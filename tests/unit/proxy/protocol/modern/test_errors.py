"""Errors of the modern revision, and those of vendors as its callers get them."""

from __future__ import annotations

import json

import pytest

from proxy.protocol.modern.errors import Refusal, of_vendor

DEEP = b"[" * 300 + b"]" * 300  # deeper ones are refused where they are read
ODD = (b"null", b"5", b'{"requiredCapabilities":[]}', DEEP, b'{"requiredCapabilities":%b}' % DEEP)


def test_an_unknown_id_is_left_out() -> None:
    assert json.loads(Refusal(None, 400, -32600, "no").body) == {
        "jsonrpc": "2.0",
        "error": {"code": -32600, "message": "no"},
    }
    assert json.loads(Refusal(0, 400, -32022, "no", {"requested": "x"}).body) == {
        "jsonrpc": "2.0",
        "id": 0,
        "error": {"code": -32022, "message": "no", "data": {"requested": "x"}},
    }


@pytest.mark.parametrize("code", [-32001, -32002, -32020, -32021, -32022, -32042, -32602])
@pytest.mark.parametrize("data", ODD)
def test_no_data_of_a_vendor_is_too_odd(code: int, data: bytes) -> None:
    status, body = of_vendor(1, b'{"code":%d,"message":"m","data":%b}' % (code, data), {})
    assert status == 200
    assert body.startswith(b'{"jsonrpc":"2.0","id":1,"error":{"code":')


def test_a_vendors_own_error_keeps_its_bytes() -> None:
    raw = b'{"code": -32001, "message":"m","data": 1.50}'
    assert of_vendor("a", raw, {}) == (200, b'{"jsonrpc":"2.0","id":"a","error":%b}' % raw)


@pytest.mark.parametrize(
    ("own", "status"), [({}, 400), ({"roots": {}}, 400), ({"sampling": {}}, 400), ({"sampling": {}, "roots": {}}, 200)]
)
def test_a_capability_is_missing_only_where_it_is(own: dict[str, object], status: int) -> None:
    raw = b'{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{},"roots":{}}}}'
    assert of_vendor(1, raw, own)[0] == status
