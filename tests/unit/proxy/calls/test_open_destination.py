"""Where calls go: worked out once, opened again only for a session, and never kept opened."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from credentials.credential_scope import CredentialScope
from credentials.errors import UnusableCredential, UnusableReason
from credentials.resolve import CredentialRef
from gateway.catalog.vendor import CredentialField, HeaderTemplate, Vendor
from proxy.caller import OrganizationAccess
from proxy.calls import open_destination
from proxy.outcomes import Denial, Denied, VendorFault
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.errors import VendorProblem

SECRET = "s3cret-value"
VENDOR = Vendor(
    slug="acme",
    name="Acme",
    url="https://acme.example/mcp",
    tool_prefix="acme",
    headers=(HeaderTemplate("X-Key", "{key}"),),
    fields=(CredentialField("key", "Key", secret=True, required=True),),
)


class Opener:
    """Stands in for the sealed store: gives `fields`, or fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fields: dict[str, str] = {"key": SECRET}
        self.fails = False
        self.open_destination = 0
        monkeypatch.setattr(open_destination, "open_fields", self)

    def __call__(self, ref: CredentialRef, **_: Any) -> dict[str, str]:
        self.open_destination += 1
        if self.fails:
            raise UnusableCredential(UnusableReason.DATA_KEY_MISSING)
        return self.fields


@pytest.fixture
def opener(monkeypatch: pytest.MonkeyPatch) -> Opener:
    """An opener of credentials that counts."""
    return Opener(monkeypatch)


def organization() -> OrganizationAccess:
    return OrganizationAccess(uuid.uuid4(), "Org", True, {}, (), {})


def credential() -> CredentialRef:
    return CredentialRef(uuid.uuid4(), "acme", CredentialScope.ORGANIZATION, None, None, "", 1, b"sealed", 1)


def reached(*arguments: Any) -> Destination:
    found = open_destination.destination(*arguments)
    assert isinstance(found, Destination)
    return found


def test_it_is_worked_out_once_and_opened_again_for_a_session(opener: Opener) -> None:
    org, ref = organization(), credential()
    first = reached(org, VENDOR, ref)
    assert reached(org, VENDOR, ref) is first
    assert opener.open_destination == 1
    assert first.open() == ("https://acme.example/mcp", {"X-Key": SECRET})
    assert opener.open_destination == 2


def test_nothing_opened_is_kept_or_shown(opener: Opener) -> None:
    org = organization()
    found = reached(org, VENDOR, credential())
    assert SECRET not in repr(found) + repr(org) + repr(org.destinations)
    assert not any(SECRET in str(cell) for cell in found.open.args)  # type: ignore[attr-defined]


def test_another_loading_of_organization_or_catalog_is_worked_out_anew(opener: Opener) -> None:
    org, ref = organization(), credential()
    first = reached(org, VENDOR, ref)
    moved = reached(org, structs.replace(VENDOR, url="https://new.example/mcp"), ref)
    opener.fields = {"key": "another"}
    rotated = reached(replace(org, destinations={}), VENDOR, ref)
    assert len({first.key, moved.key, rotated.key}) == 3
    assert moved.open()[0] == "https://new.example/mcp"


def test_one_secret_in_two_organizations_is_two_sessions(opener: Opener) -> None:
    ref = credential()
    first, second = (reached(organization(), VENDOR, ref).key for _ in range(2))
    assert first != second
    assert len({first: 1, second: 2}) == 2
    assert PoolKey(first.org_id, "acme", ref.id, first.digest) == first


def test_what_cannot_be_opened_is_refused_every_time(opener: Opener) -> None:
    org, ref = organization(), credential()
    opener.fails = True
    for _ in range(2):
        denied = open_destination.destination(org, VENDOR, ref)
        assert isinstance(denied, Denied)
        assert denied.denial is Denial.UNUSABLE_CREDENTIALS
    assert opener.open_destination == 2
    opener.fails = False
    assert reached(org, VENDOR, ref).open()


def test_what_cannot_be_opened_any_more_opens_no_session(opener: Opener) -> None:
    found = reached(organization(), VENDOR, credential())
    opener.fails = True
    with pytest.raises(VendorProblem) as caught:
        found.open()
    assert caught.value.fault is VendorFault.REJECTED_CREDENTIALS


def test_what_must_not_be_read_in_answers_are_the_values_of_secret_fields(opener: Opener) -> None:
    fields = (
        CredentialField("key", "Key", secret=True, required=True),
        CredentialField("account", "Account", secret=False, required=False),
        CredentialField("realm", "Realm", secret=True, required=False, default="everybody's"),
        CredentialField("region", "Region", secret=True, required=False, options=("europe-west", "us-east")),
    )
    opener.fields = {"key": SECRET, "account": "acme-inc-1", "realm": "everybody's", "region": "us-east"}
    found = reached(organization(), structs.replace(VENDOR, fields=fields), credential())
    assert list(found.secrets()) == [SECRET]
    opener.fails = True
    with pytest.raises(VendorProblem) as caught:
        list(found.secrets())
    assert caught.value.fault is VendorFault.REJECTED_CREDENTIALS
