"""Every error code of a call has words."""

from __future__ import annotations

import inspect
import re

import pytest

from gateway.web.templatetags.error_words import WORDS, error_words
from proxy.calls import call_audit
from proxy.outcomes import Denial, VendorFault

WRITTEN = re.findall(r'CallStatus\.(?:ERROR|DENIED), "(\w+)"', inspect.getsource(call_audit))


def test_the_codes_are_found() -> None:
    assert {"tool_error", "client_closed", "rate_limited"} <= set(WRITTEN)


@pytest.mark.parametrize("code", [*Denial, *VendorFault, *WRITTEN])
def test_each_code_has_words(code: str) -> None:
    assert error_words(str(code))


def test_no_words_without_a_code() -> None:
    assert set(WORDS) == {*map(str, (*Denial, *VendorFault)), *WRITTEN}
    assert error_words("of another release") == ""
