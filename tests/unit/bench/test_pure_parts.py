"""The steps whose cost is measured do what a call does, and the modules to compile can be compiled."""

from __future__ import annotations

import pytest

from audit.call_record import CallRecord
from bench import compiled, pure_parts
from proxy.protocol import jsonrpc, replies


def test_every_step_does_its_part_of_a_call() -> None:
    found = {name: step() for name, step in pure_parts.steps().items()}
    assert isinstance(found["take the message apart"], jsonrpc.Request)
    assert found["look for the credential in the reply"] == pure_parts.REPLY
    reply = found["take the reply apart"]
    assert isinstance(reply, replies.VendorResult)
    assert not reply.is_error
    record = found["the audit record"]
    assert isinstance(record, CallRecord)
    assert record.request_bytes == len(pure_parts.BODY)


@pytest.mark.parametrize("name", compiled.MODULES)
def test_modules_to_compile_are_there_and_pure_and_without_classes_of_msgspec(name: str) -> None:
    text = (compiled.ROOT / name).read_text(encoding="utf-8")
    assert text.startswith('"""Pure:')
    assert "msgspec.Struct" not in text
