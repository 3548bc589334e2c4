"""Keys in the database: made once, rotated with an overlap, sealed under CREDENTIAL_KEYS."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import jwt
import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.test import Client as Browser
from pytest_django.fixtures import Settings

from gateway.keys.resealing import reseal
from gateway.lib import clock
from gateway.lib.crypto import CryptoError, Keyring
from gateway.lib.errors import Conflict
from oauth_ext.bearer import InvalidBearer
from oauth_ext.checks import signing_keys
from oauth_ext.jwt import key_material, key_rows, keys, rotation
from oauth_ext.models import SigningKey
from tests.api.oauth_ext.conftest import Service, make_service
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once

START = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
A, B = bytes(range(32)), bytes(range(100, 132))


def loaded() -> key_material.KeySet:
    """The keys as another process would find them."""
    keys.forget()
    return keys.load_key_set()


def published() -> set[str]:
    """The kids of the served document."""
    keys.forget()
    return {key["kid"] for key in Browser().get("/.well-known/jwks.json").json()["keys"]}


def kid_of(token: str) -> str:
    return str(jwt.get_unverified_header(token)["kid"])


def test_the_first_need_makes_one_key(db: None) -> None:
    first = loaded()
    assert SigningKey.objects.count() == 1
    row = SigningKey.objects.get()
    assert (row.kid, row.key_id, row.retires_at) == (first.signer.kid, "test-2", None)
    assert row.public_jwk == first.signer.public_jwk()
    assert first.signer.to_der() not in bytes(row.sealed_private_key)
    assert loaded().signer.kid == first.signer.kid
    assert SigningKey.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_processes_that_start_at_once_agree_on_one_key() -> None:
    kids = at_once(*[lambda: keys._stored().signer.kid] * 6)
    assert all(isinstance(kid, str) for kid in kids), kids
    assert len(set(kids)) == 1
    assert SigningKey.objects.count() == 1


def test_a_process_keeps_its_keys_for_seconds(db: None) -> None:
    first = keys.load_key_set()
    assert keys.load_key_set() is first
    assert keys.load_key_set(max_age_s=0) is not first


def test_rotation_overlaps(service: Service) -> None:
    with time_machine.travel(START, tick=False) as traveller:
        before = service.token()
        done = rotation.rotate_signing_key()
        assert (done.signs_from, done.retires_at) == (START + timedelta(hours=1), START + timedelta(hours=3))
        assert done.retiring == (kid_of(before),)
        assert published() == {kid_of(before), done.kid}
        traveller.move_to(START + timedelta(minutes=59))
        late = service.token()
        assert kid_of(late) == kid_of(before)
        assert load_identity(before).subject == service.client.subject
        traveller.move_to(START + timedelta(minutes=61))
        keys.forget()
        after = service.token()
        assert kid_of(after) == done.kid
        assert load_identity(late).subject == load_identity(after).subject == service.client.subject
        traveller.move_to(START + timedelta(minutes=179))
        assert published() == {kid_of(before), done.kid}
        traveller.move_to(START + timedelta(hours=3))
        assert published() == {done.kid}
        assert rotation.remove_retired_signing_keys(clock.now()) == 1


def test_rotation_at_once_keeps_old_tokens_valid(service: Service) -> None:
    before = service.token()
    done = rotation.rotate_signing_key(at_once=True)
    after = service.token()
    assert kid_of(after) == done.kid != kid_of(before)
    assert load_identity(before).subject == load_identity(after).subject


def test_a_waiting_key_is_not_joined_by_another_but_may_be_called_up(db: None) -> None:
    loaded()
    waiting = rotation.rotate_signing_key()
    with pytest.raises(Conflict, match=waiting.kid):
        rotation.rotate_signing_key()
    called_up = rotation.rotate_signing_key(at_once=True)
    assert called_up.kid == waiting.kid == loaded().signer.kid
    assert SigningKey.objects.count() == 2
    assert SigningKey.objects.exclude(retires_at=None).get().kid == called_up.retiring[0]


def test_at_most_next_current_and_previous_are_published(db: None) -> None:
    with time_machine.travel(START, tick=False) as traveller:
        loaded()
        for day in range(1, 4):
            traveller.move_to(START + timedelta(days=day))
            rotation.rotate_signing_key()
            assert len(published()) == 2
            traveller.move_to(START + timedelta(days=day, hours=2))
            assert len(published()) == 2
        assert SigningKey.objects.count() <= 3


def test_a_rotation_elsewhere_is_noticed_by_the_first_unknown_key(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "RELOAD_FOR_UNKNOWN_KEY_AFTER_S", keys.RELOAD_AFTER_S / 2)
    known = loaded()
    with time_machine.travel(clock.now(), tick=True):
        rotation.rotate_signing_key(at_once=True)
        token = service.token()
        long_ago_s = keys._loaded.at_s - keys.RELOAD_FOR_UNKNOWN_KEY_AFTER_S if keys._loaded else 0.0
        keys._loaded = keys._Loaded(known, long_ago_s)  # the keys of a process that did not rotate
        assert load_identity(token).subject == service.client.subject
        keys._loaded = keys._Loaded(known, keys._loaded.at_s)
        with pytest.raises(InvalidBearer, match="unknown key"):  # but not for every token of an attacker
            load_identity(token)


def test_a_row_that_does_not_open_is_left_out_and_reported(
    db: None, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.CREDENTIAL_KEYRING = Keyring("a", {"a": A})
    lost = loaded().signer.kid
    settings.CREDENTIAL_KEYRING = Keyring("b", {"b": B})
    with pytest.raises(keys.SigningKeysUnavailable):
        loaded()
    assert SigningKey.objects.count() == 1  # a new key would hide the mistake
    now = clock.now()
    usable = key_rows.insert(key_material.generate(now), created_at=now, signs_from=now - timedelta(hours=1))
    assert set(loaded().verifiers) == {usable.kid}
    assert lost in caplog.text


def test_a_private_key_copied_into_another_row_does_not_open(db: None) -> None:
    loaded()
    row = SigningKey.objects.get()
    row.kid = "copied"
    with pytest.raises(CryptoError):
        key_rows.unseal(row)


def test_a_public_key_written_into_the_table_is_not_believed(db: None) -> None:
    mine = loaded().signer
    SigningKey.objects.update(public_jwk=key_material.generate(clock.now()).public_jwk())
    assert loaded().public_jwks["keys"] == [mine.public_jwk()]


def test_reseal_moves_every_row_to_the_current_key(db: None, settings: Settings) -> None:
    settings.CREDENTIAL_KEYRING = Keyring("a", {"a": A})
    kid = loaded().signer.kid
    rotation.rotate_signing_key()
    settings.CREDENTIAL_KEYRING = Keyring("b", {"b": B, "a": A})
    assert [batch.resealed for batch in reseal(key_rows.SIGNING_KEYS)] == [2]
    assert list(reseal(key_rows.SIGNING_KEYS)) == []
    settings.CREDENTIAL_KEYRING = Keyring("b", {"b": B})
    assert loaded().signer.kid == kid
    settings.CREDENTIAL_KEYRING = Keyring("a", {"a": A})
    [batch] = reseal(key_rows.SIGNING_KEYS)
    assert (batch.resealed, len(batch.failed)) == (0, 2)
    assert set(SigningKey.objects.values_list("key_id", flat=True)) == {"b"}


@pytest.mark.django_db(transaction=True)
def test_rotations_at_once_end_in_one_waiting_key() -> None:
    loaded()
    results = at_once(*[lambda: rotation.rotate_signing_key()] * 4)
    assert sum(isinstance(result, rotation.Rotation) for result in results) == 1
    assert sum(isinstance(result, Conflict) for result in results) == 3
    assert SigningKey.objects.count() == 2


def test_the_command_rotates_in_the_database(db: None) -> None:
    loaded()
    out = StringIO()
    call_command("rotate_signing_key", stdout=out)
    assert "is published and signs from" in out.getvalue()
    assert "PRIVATE" not in out.getvalue().upper()
    with pytest.raises(CommandError, match="already published"):
        call_command("rotate_signing_key", stdout=StringIO())
    call_command("rotate_signing_key", "--now", stdout=out)
    assert SigningKey.objects.count() == 2


@pytest.mark.parametrize(("arguments", "signs"), [([], "old"), (["--now"], "new")])
def test_the_command_prints_a_new_setting(db: None, settings: Settings, arguments: list[str], signs: str) -> None:
    old = key_material.generate(START)
    settings.TOKEN_SIGNING_KEYS = key_material.to_setting([old])
    out, err = StringIO(), StringIO()
    call_command("rotate_signing_key", *arguments, stdout=out, stderr=err)
    pairs = key_material.parse_setting(out.getvalue())
    assert len(pairs) == 2
    assert old.kid in {pair.kid for pair in pairs}
    assert (pairs[0].kid == old.kid) is (signs == "old")
    assert err.getvalue().startswith("WARNING")
    assert out.getvalue().strip() not in err.getvalue()
    assert not SigningKey.objects.exists()


def test_keys_of_the_environment_leave_the_table_alone(db: None, settings: Settings) -> None:
    pairs = [key_material.generate(START), key_material.generate(START)]
    settings.TOKEN_SIGNING_KEYS = key_material.to_setting(pairs)
    found = loaded()
    assert found.signer.kid == pairs[0].kid
    assert set(found.verifiers) == {pair.kid for pair in pairs}
    assert not SigningKey.objects.exists()
    with pytest.raises(Conflict, match="TOKEN_SIGNING_KEYS"):
        rotation.rotate_signing_key()


def test_moving_to_keys_of_the_environment_ends_older_tokens_only(cast: Cast, settings: Settings) -> None:
    service = make_service(cast)
    before = service.token()
    settings.TOKEN_SIGNING_KEYS = key_material.to_setting([key_material.generate(START)])
    keys.forget()
    assert load_identity(service.token()).subject == service.client.subject
    with pytest.raises(InvalidBearer, match="unknown key"):
        load_identity(before)


def test_a_bad_setting_is_reported_at_boot(settings: Settings) -> None:
    assert signing_keys(None) == []
    settings.TOKEN_SIGNING_KEYS = "k:AAAA"
    assert [message.id for message in signing_keys(None)] == ["oauth_ext.E001"]
    settings.TOKEN_SIGNING_KEYS = key_material.to_setting([key_material.generate(START)])
    assert signing_keys(None) == []
