"""HTTP Basic or form fields, never both."""

from __future__ import annotations

import base64

import pytest

from oauth_ext.client_authentication import BASIC, POST, BadClientAuthentication, Presented, presented, used_basic


def basic(text: str, scheme: str = "Basic") -> str:
    return f"{scheme} {base64.b64encode(text.encode()).decode()}"


@pytest.mark.parametrize(
    ("header", "secret"),
    [
        (basic("svc_a:s-e_cret"), "s-e_cret"),
        (basic("svc_a:s-e_cret", "bAsIc"), "s-e_cret"),
        (basic("svc%5Fa:s%2De%5Fcret"), "s-e_cret"),
        (basic("svc_a:with:colon"), "with:colon"),
        (basic("svc_a:"), ""),
        (basic("svc_a"), ""),
    ],
)
def test_basic(header: str, secret: str) -> None:
    assert presented(header, "", "") == Presented(BASIC, "svc_a", secret)
    assert presented(header, "svc_a", "") == Presented(BASIC, "svc_a", secret)
    assert used_basic(header)


@pytest.mark.parametrize(
    "header",
    ["Basic", "Basic ", "Basic !!!", "Basic YQ", basic("svc_é:x"), basic("svc_a:%00"), basic("a:b") + ",Basic x"],
)
def test_basic_that_cannot_be_read_names_nobody(header: str) -> None:
    assert presented(header, "", "") == Presented(BASIC, "", "")
    assert used_basic(header)


@pytest.mark.parametrize("header", [None, "", "Bearer abc", "Basically x"])
def test_form_fields_when_there_is_no_basic(header: str | None) -> None:
    assert presented(header, "svc_a", "s") == Presented(POST, "svc_a", "s")
    assert not used_basic(header)


def test_two_methods_at_once_are_refused() -> None:
    with pytest.raises(BadClientAuthentication, match="not both") as refusal:
        presented(basic("svc_a:topsecret"), "svc_a", "topsecret")
    assert "topsecret" not in str(refusal.value)
    with pytest.raises(BadClientAuthentication, match="differs"):
        presented(basic("svc_a:s"), "svc_b", "")


def test_the_secret_stays_out_of_repr() -> None:
    assert "topsecret" not in repr(Presented(BASIC, "svc_a", "topsecret"))
