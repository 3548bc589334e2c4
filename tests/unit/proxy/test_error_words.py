"""Every error code of a call has words."""

from __future__ import annotations

import pytest

from gateway.web.templatetags.error_words import WORDS, error_words
from proxy.outcomes import CallFault, Denial, VendorFault

CODES = (*Denial, *VendorFault, *CallFault)


@pytest.mark.parametrize("code", CODES)
def test_each_code_has_words(code: str) -> None:
    assert error_words(str(code))


def test_no_words_without_a_code() -> None:
    assert set(WORDS) == set(map(str, CODES))
    assert error_words("of another release") == ""
