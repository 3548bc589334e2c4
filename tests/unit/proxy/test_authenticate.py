"""Reading the Authorization header."""

from __future__ import annotations

import pytest

from proxy.authenticate import MalformedAuthorization, NoBearer, bearer_of


@pytest.mark.parametrize("header", ["Bearer abc", "bearer abc", "BEARER   abc "])
def test_a_bearer_token_in_any_case(header: str) -> None:
    assert bearer_of(header) == "abc"


def test_no_header_is_distinguished_from_a_wrong_one() -> None:
    with pytest.raises(NoBearer):
        bearer_of(None)
    for header in ("Basic abc", "", "abc", "Bearerabc"):
        with pytest.raises(MalformedAuthorization):
            bearer_of(header)
