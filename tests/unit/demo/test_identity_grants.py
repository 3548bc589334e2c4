"""Codes and tokens of the demo identity provider: the proof key and the bounds."""

from __future__ import annotations

import pytest

from demo import identity_grants
from demo.identity_grants import Grant, GrantStore, InvalidGrantError, Person, matches_challenge
from tests.unit.demo.identity_flow import CALLBACK, CHALLENGE, VERIFIER, ManualClock

GRANT = Grant("gateway", CALLBACK, CHALLENGE, None, "openid", Person("a@b.example", "A"), 1_800_000_000)


def redeem(store: GrantStore, code: str, client_id: str = "gateway") -> str:
    return store.redeem_code(code, client_id=client_id, redirect_uri=CALLBACK, verifier=VERIFIER)[1]


def test_challenge_is_the_one_of_the_standard() -> None:
    # RFC 7636, appendix B.
    challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert matches_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", challenge)
    assert not matches_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXl", challenge)
    for malformed in ("", "x" * 42, "x" * 129, "ä" * 50, "x y" * 20):
        assert not matches_challenge(malformed, challenge)


def test_code_of_another_client_is_refused() -> None:
    store = GrantStore(ManualClock())
    with pytest.raises(InvalidGrantError, match="another client"):
        redeem(store, store.issue_code(GRANT), client_id="another")


def test_oldest_code_goes_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity_grants, "MAX_CODES", 2)
    store = GrantStore(ManualClock())
    oldest, older, newest = (store.issue_code(GRANT) for _ in range(3))
    with pytest.raises(InvalidGrantError, match="unknown"):
        redeem(store, oldest)
    assert redeem(store, older) != redeem(store, newest)


def test_oldest_token_goes_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity_grants, "MAX_TOKENS", 2)
    store = GrantStore(ManualClock())
    tokens = [redeem(store, store.issue_code(GRANT)) for _ in range(3)]
    assert [store.person_of(token) for token in tokens] == [None, GRANT.person, GRANT.person]


def test_store_does_not_hold_what_it_gave_out() -> None:
    store = GrantStore(ManualClock())
    code = store.issue_code(GRANT)
    token = redeem(store, code)
    assert code not in str(vars(store))
    assert token not in str(vars(store))
