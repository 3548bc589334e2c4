"""PKCE: S256 and nothing else."""

from __future__ import annotations

import pytest

from oauth_ext import pkce

# The example of RFC 7636, appendix B.
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_the_example_of_the_standard() -> None:
    assert pkce.challenge_of(VERIFIER) == CHALLENGE
    assert pkce.is_challenge(CHALLENGE)
    assert pkce.proves(VERIFIER, CHALLENGE)


@pytest.mark.parametrize("length", [43, 128])
def test_lengths_of_a_verifier(length: int) -> None:
    verifier = "a.b_c-d~" * 16
    assert pkce.proves(verifier[:length], pkce.challenge_of(verifier[:length]))


@pytest.mark.parametrize(
    "verifier",
    ["", VERIFIER[:-1], VERIFIER + "A", CHALLENGE, "a" * 42, "a" * 129, VERIFIER + "\n", "é" * 43, "a b" * 20],
)
def test_other_verifiers(verifier: str) -> None:
    assert not pkce.proves(verifier, CHALLENGE)


def test_a_malformed_verifier_proves_nothing_even_if_its_digest_fits() -> None:
    for verifier in ("short", "a" * 129, "!" * 50):
        assert not pkce.proves(verifier, pkce.challenge_of(verifier))


@pytest.mark.parametrize("challenge", ["", "x" * 42, "x" * 44, CHALLENGE + "=", "+" * 43, CHALLENGE[:-1] + "\n"])
def test_other_challenges(challenge: str) -> None:
    assert not pkce.is_challenge(challenge)
    assert not pkce.proves(VERIFIER, challenge)
