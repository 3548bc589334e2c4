"""The signature of a webhook: the documented scheme, checked against the provider's own library."""

from __future__ import annotations

import pytest
import stripe

from billing.signature import TOLERANCE_S, is_valid
from tests.factories.billing import signature

pytestmark = pytest.mark.one_back_end
BODY = '{"id": "evt_1", "name": "Zoë"}'.encode()
NOW = 1_800_000_000
OWN, NEXT = "whsec_own", "whsec_next"


def accepts(header: str, body: bytes = BODY, *, secrets: tuple[str, ...] = (OWN,), now_s: float = NOW) -> bool:
    return is_valid(header, body, secrets=secrets, now_s=now_s)


def own(**options: object) -> str:
    return signature(BODY, **{"secret": OWN, "at": NOW, **options})  # type: ignore[arg-type]


def test_what_the_providers_library_signs_is_accepted() -> None:
    assert accepts(stripe.WebhookSignature.generate_signature_header(BODY.decode(), OWN, NOW))


def test_what_is_signed_here_the_providers_library_accepts() -> None:
    assert stripe.WebhookSignature.verify_header(BODY.decode(), own(), OWN)


@pytest.mark.parametrize(("age_s", "expected"), [(0, True), (300, True), (301, False), (-300, True), (-301, False)])
def test_the_tolerance_counts_both_ways(age_s: int, expected: bool) -> None:
    assert TOLERANCE_S == 300
    assert accepts(own(), now_s=NOW + age_s) is expected


def test_any_of_several_signatures_counts() -> None:
    signed = own().partition("v1=")[2]
    assert accepts(f"t={NOW},v1={'0' * 64},v0=abc,v1={signed}")
    assert accepts(f"v1={signed}, t={NOW}")
    assert not accepts(f"t={NOW},v0={signed}")


def test_both_secrets_count_while_one_replaces_the_other() -> None:
    for secret in (OWN, NEXT):
        assert accepts(own(secret=secret), secrets=(NEXT, OWN))
    assert not accepts(own(secret=NEXT))
    assert not accepts(own(), secrets=())


def test_one_changed_byte_is_refused() -> None:
    assert accepts(own())
    assert not accepts(own(), BODY + b" ")
    assert not accepts(own(), BODY.replace(b"evt_1", b"evt_2"))
    assert not accepts(signature(b"\xff\x00", secret=OWN, at=NOW))
    assert accepts(signature(b"\xff\x00", secret=OWN, at=NOW), b"\xff\x00")


SIGNED = signature(BODY, secret=OWN, at=NOW).partition("v1=")[2]


@pytest.mark.parametrize(
    "header",
    [
        "",
        ",",
        "t=",
        f"v1={SIGNED}",
        f"t=,v1={SIGNED}",
        f"t={NOW}",
        f"t={NOW},v1=",
        f"t={NOW},t={NOW},v1={SIGNED}",
        f"t=-{NOW},v1={SIGNED}",
        f"t=+{NOW},v1={SIGNED}",
        f"t={NOW}.0,v1={SIGNED}",
        f"t=٣{NOW},v1={SIGNED}",
        f"t={'9' * 5000},v1={SIGNED}",
        f"t={NOW},v1={SIGNED.upper()}",
        f"t={NOW},v1=\ud800",
        f"t={NOW},v1={SIGNED[:-1]}",
        "v1=" * 10_000,
        f"t={NOW},v1={SIGNED}" + ",v1=x" * 1_000,
    ],
)
def test_headers_that_are_none(header: str) -> None:
    assert not accepts(header)
