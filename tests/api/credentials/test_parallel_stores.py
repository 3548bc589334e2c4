"""Many at once: one row per place, one data key per organization, no lost revision."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from credentials import sealing
from credentials.credential_scope import CredentialScope
from credentials.errors import KeyNameTaken, TeamHasKey
from credentials.models import Credential, OrganizationDataKey
from credentials.sealing import open_fields, seal_fields, wrapped_keys
from credentials.selectors import credential_refs
from gateway.lib import ids
from tests.factories.credentials import Setting
from tests.factories.races import at_once

THREADS = 8


def faults_at_once(work: Callable[[int], object]) -> list[Exception]:
    """Exceptions of `work` in THREADS threads."""
    results = at_once(*[partial(work, number) for number in range(THREADS)])
    return [result for result in results if isinstance(result, Exception)]


@pytest.mark.parametrize("scope", [CredentialScope.ORGANIZATION, CredentialScope.TEAM, CredentialScope.SERVICE_CLIENT])
def test_the_same_credential_stored_at_once_is_one_row(committed_setting: Setting, scope: CredentialScope) -> None:
    faults = faults_at_once(lambda number: committed_setting.store(scope, fields={"apiKey": f"value-{number}"}))
    assert faults == []
    row = Credential.objects.get()
    assert row.revision == THREADS
    organization_id = committed_setting.cast.org.id
    (ref,) = credential_refs(organization_id)
    fields = open_fields(ref, organization_id=organization_id, wrapped=wrapped_keys(organization_id))
    assert fields["apiKey"] in {f"value-{number}" for number in range(THREADS)}


def test_the_same_key_name_at_once_is_taken_once(committed_setting: Setting) -> None:
    faults = faults_at_once(lambda number: committed_setting.store(CredentialScope.NAMED_KEY))
    assert [type(fault) for fault in faults] == [KeyNameTaken] * (THREADS - 1)
    assert Credential.objects.count() == 1


def test_the_same_team_at_once_gets_one_key(committed_setting: Setting) -> None:
    team = committed_setting.team
    faults = faults_at_once(
        lambda number: committed_setting.store(CredentialScope.NAMED_KEY, name=f"Key {number}", team=team)
    )
    assert [type(fault) for fault in faults] == [TeamHasKey] * (THREADS - 1)
    assert Credential.objects.count() == 1


def test_different_credentials_at_once_share_one_data_key(committed_setting: Setting) -> None:
    faults = faults_at_once(lambda number: committed_setting.store(CredentialScope.NAMED_KEY, name=f"Key {number}"))
    assert faults == []
    assert OrganizationDataKey.objects.count() == 1
    organization_id = committed_setting.cast.org.id
    wrapped = wrapped_keys(organization_id)
    refs = credential_refs(organization_id)
    assert len(refs) == THREADS
    assert all(open_fields(ref, organization_id=organization_id, wrapped=wrapped) for ref in refs)


def test_a_first_use_without_any_lock_makes_one_data_key(
    committed_setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The services hold a lock; the data key does not rely on it: all threads wait between looking and making."""
    barrier = threading.Barrier(THREADS)
    keyring = sealing.keyring()

    def slow_keyring() -> object:
        if not OrganizationDataKey.objects.exists():
            barrier.wait(timeout=10)
        return keyring

    monkeypatch.setattr(sealing, "keyring", slow_keyring)
    organization_id, record_id = committed_setting.cast.org.id, ids.new_id()
    sealed: list[tuple[int, bytes]] = []

    def seal(number: int) -> None:
        place = {"organization_id": organization_id, "vendor": "acme", "scope": CredentialScope.ORGANIZATION}
        sealed.append(seal_fields(**place, record_id=record_id, fields={"apiKey": f"v{number}"}))  # type: ignore[arg-type]

    assert faults_at_once(seal) == []
    assert OrganizationDataKey.objects.count() == 1
    aad = f"cred|{organization_id}|acme|organization|{record_id}|1".encode()
    (wrapped,) = wrapped_keys(organization_id)
    data_key = keyring.unwrap(wrapped.key_id, wrapped.wrapped, sealing.data_key_aad(organization_id, 1))
    assert {sealing.open_sealed(data_key, content, aad) for _, content in sealed} == {
        f'{{"apiKey":"v{number}"}}'.encode() for number in range(THREADS)
    }
