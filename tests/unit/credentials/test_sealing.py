"""Opening on the call path, without a database: a sealed credential opens in its place and nowhere else."""

from __future__ import annotations

import dataclasses
import os
from uuid import UUID, uuid4

import msgspec
import pytest
from django.conf import settings

from credentials import sealing
from credentials.credential_scope import CredentialScope
from credentials.data_key_cache import DataKeyCache, WrappedKey
from credentials.errors import UnusableCredential, UnusableReason
from credentials.resolve import CredentialRef
from credentials.sealing import open_fields
from gateway.lib.crypto import Keyring, seal

FIELDS = {"apiKey": "plain-api-key-value", "platform": "eu"}
ORG, OTHER_ORG = uuid4(), uuid4()
DATA_KEY = os.urandom(32)


def wrap(organization: UUID = ORG, *, version: int = 1, data_key: bytes = DATA_KEY) -> WrappedKey:
    keyring = sealing.keyring()
    return WrappedKey(version, keyring.current_id, keyring.wrap(data_key, f"dek|{organization}|{version}".encode()))


def sealed_ref(
    organization: UUID = ORG, *, plaintext: bytes | None = None, data_key: bytes = DATA_KEY
) -> CredentialRef:
    """A row as it would be stored, its additional data spelled out here so that a change of it is noticed."""
    record = uuid4()
    aad = f"cred|{organization}|acme|organization|{record}|1".encode()
    return CredentialRef(
        id=record,
        vendor="acme",
        scope=CredentialScope.ORGANIZATION,
        team_id=None,
        service_client_id=None,
        name="",
        data_key_version=1,
        sealed=seal(DATA_KEY, msgspec.json.encode(FIELDS) if plaintext is None else plaintext, aad),
        revision=1,
    )


def refusal(ref: CredentialRef, wrapped: list[WrappedKey], organization: UUID = ORG) -> UnusableReason:
    with pytest.raises(UnusableCredential) as caught:
        open_fields(ref, organization_id=organization, wrapped=wrapped, cache=DataKeyCache(max_entries=10))
    return caught.value.reason


def test_what_was_sealed_opens() -> None:
    cache = DataKeyCache(max_entries=10)
    assert open_fields(sealed_ref(), organization_id=ORG, wrapped=[wrap()], cache=cache) == FIELDS


def test_the_right_version_is_used_among_several() -> None:
    wrapped = [wrap(version=2, data_key=os.urandom(32)), wrap(), wrap(version=3, data_key=os.urandom(32))]
    assert open_fields(sealed_ref(), organization_id=ORG, wrapped=wrapped, cache=DataKeyCache(max_entries=10)) == FIELDS


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"id": uuid4()},
        {"vendor": "globex"},
        {"scope": CredentialScope.TEAM},
        {"scope": CredentialScope.SERVICE_CLIENT},
    ],
)
def test_a_ciphertext_copied_into_another_row_does_not_open(elsewhere: dict[str, object]) -> None:
    copied = dataclasses.replace(sealed_ref(), **elsewhere)  # type: ignore[arg-type]
    assert refusal(copied, [wrap()]) is UnusableReason.DOES_NOT_OPEN


def test_a_ciphertext_under_another_version_label_does_not_open_even_with_the_same_key() -> None:
    copied = dataclasses.replace(sealed_ref(), data_key_version=2)
    assert refusal(copied, [wrap(), wrap(version=2)]) is UnusableReason.DOES_NOT_OPEN


def test_a_ciphertext_in_another_organization_does_not_open_even_with_the_same_key() -> None:
    assert refusal(sealed_ref(), [wrap(OTHER_ORG)], OTHER_ORG) is UnusableReason.DOES_NOT_OPEN


def test_a_data_key_copied_to_another_organization_does_not_unwrap() -> None:
    assert refusal(sealed_ref(OTHER_ORG), [wrap(ORG)], OTHER_ORG) is UnusableReason.DOES_NOT_OPEN


def test_a_data_key_relabelled_as_another_version_does_not_unwrap() -> None:
    relabelled = dataclasses.replace(wrap(version=2), version=1)
    assert refusal(sealed_ref(), [relabelled]) is UnusableReason.DOES_NOT_OPEN


def test_a_copied_data_key_is_not_served_from_the_cache_either() -> None:
    cache = DataKeyCache(max_entries=10)
    assert open_fields(sealed_ref(), organization_id=ORG, wrapped=[wrap()], cache=cache) == FIELDS
    with pytest.raises(UnusableCredential):
        open_fields(sealed_ref(OTHER_ORG), organization_id=OTHER_ORG, wrapped=[wrap()], cache=cache)


@pytest.mark.parametrize("length", [0, 1, 12, 28, 40])
def test_a_truncated_ciphertext_does_not_open(length: int) -> None:
    ref = sealed_ref()
    assert refusal(dataclasses.replace(ref, sealed=ref.sealed[:length]), [wrap()]) is UnusableReason.DOES_NOT_OPEN


@pytest.mark.parametrize("length", [0, 5, 60])
def test_a_truncated_data_key_does_not_unwrap(length: int) -> None:
    stored = wrap()
    cut = dataclasses.replace(stored, wrapped=stored.wrapped[:length])
    assert refusal(sealed_ref(), [cut]) is UnusableReason.DOES_NOT_OPEN


def test_the_wrong_data_key_does_not_open() -> None:
    assert refusal(sealed_ref(), [wrap(data_key=os.urandom(32))]) is UnusableReason.DOES_NOT_OPEN


def test_no_data_key_of_that_version_is_distinguished() -> None:
    assert refusal(sealed_ref(), []) is UnusableReason.DATA_KEY_MISSING
    assert refusal(sealed_ref(), [wrap(version=2)]) is UnusableReason.DATA_KEY_MISSING


def test_a_wrapping_key_that_is_not_configured_is_distinguished() -> None:
    removed = dataclasses.replace(wrap(), key_id="removed")
    assert refusal(sealed_ref(), [removed]) is UnusableReason.KEY_NOT_CONFIGURED


def test_a_wrapping_key_of_the_same_name_but_other_bytes_does_not_unwrap(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = wrap()
    current = sealing.keyring().current_id
    monkeypatch.setattr(settings, "CREDENTIAL_KEYRING", Keyring(current_id=current, keys={current: os.urandom(32)}))
    assert refusal(sealed_ref(), [stored]) is UnusableReason.DOES_NOT_OPEN


@pytest.mark.parametrize("plaintext", [b"", b"[]", b'{"apiKey": 5}', b'{"apiKey": {"a": "b"}}', b"\xff"])
def test_an_opened_text_that_is_not_flat_fields_is_refused(plaintext: bytes) -> None:
    assert refusal(sealed_ref(plaintext=plaintext), [wrap()]) is UnusableReason.DOES_NOT_OPEN


def test_a_refusal_is_loud_names_the_row_and_shows_no_value(caplog: pytest.LogCaptureFixture) -> None:
    ref = dataclasses.replace(sealed_ref(), vendor="globex")
    with pytest.raises(UnusableCredential) as caught:
        open_fields(ref, organization_id=ORG, wrapped=[wrap()])
    records = [record for record in caplog.records if record.name == "credentials.sealing"]
    assert [record.levelname for record in records] == ["ERROR"]
    said = str(records[0].msg)
    assert all(part in said for part in (str(ref.id), str(ORG), "globex", "does_not_open"))
    for hidden in (FIELDS["apiKey"], DATA_KEY.hex(), repr(DATA_KEY), ref.sealed.hex(), repr(ref.sealed)):
        assert hidden not in said
        assert hidden not in str(caught.value)
    assert "does_not_open" in str(caught.value)


def test_nothing_sealed_is_shown_by_a_repr() -> None:
    wrapped = wrap()
    assert "wrapped=" not in repr(wrapped)
    assert repr(wrapped.wrapped)[2:-1] not in repr(wrapped)
