"""The master key that seals: the first of CREDENTIAL_KEYS, and not before it is the first of every running process."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

import pytest
import time_machine
from django.conf import LazySettings
from structlog.testing import capture_logs

from credentials.models import OrganizationDataKey
from gateway.keys import holders
from gateway.keys.current import current_name, sealing_keys, settle_master_key
from gateway.keys.holders import Holder, holders_without, led_by_another_key, running
from gateway.keys.models import KeyHolder, KeyRecord
from gateway.keys.presence import Presence, fingerprint
from gateway.lib import clock
from gateway.lib.crypto import Keyring
from tests.factories.credentials import Setting

OLD, NEW = os.urandom(32), os.urandom(32)
MASTER = KeyRecord.Kind.MASTER


@pytest.fixture
def keys(settings: LazySettings) -> Callable[..., None]:
    """Sets CREDENTIAL_KEYS to these names, the first one first."""

    def set_keys(*names: str) -> None:
        known = {"old": OLD, "new": NEW}
        settings.CREDENTIAL_KEYRING = Keyring(names[0], {name: known[name] for name in names})

    set_keys("old")
    return set_keys


def another_process(*names: str) -> Holder:
    holder = Holder("web", key_names=lambda: names)
    holder.note()
    return holder


def seals() -> str:
    return sealing_keys().current_id


def test_without_a_record_the_first_seals(db: None, keys: Callable[..., None]) -> None:
    keys("new", "old")
    assert seals() == "new"


def test_a_new_first_key_waits_for_processes_that_lack_it(db: None, keys: Callable[..., None]) -> None:
    assert settle_master_key()
    behind = another_process("old")
    keys("new", "old")
    assert not settle_master_key()
    assert seals() == "old"
    behind.leave()
    another_process("new", "old")
    assert settle_master_key()
    assert seals() == "new"
    assert KeyRecord.objects.get(kind=MASTER, is_current=True).name == "new"


def test_processes_that_disagree_about_the_order_change_nothing(db: None, keys: Callable[..., None]) -> None:
    keys("old", "new")
    assert settle_master_key()
    another_process("old", "new")
    keys("new", "old")
    another_process("new", "old")
    for order in (("new", "old"), ("old", "new"), ("new", "old")):
        keys(*order)
        assert settle_master_key() is (order[0] == "old")
        assert seals() == "old"
    KeyHolder.objects.filter(key_names__0="old").delete()
    assert settle_master_key(), "they all begin with it now"
    assert seals() == "new"


def test_a_process_that_says_nothing_for_two_minutes_has_ended(db: None, keys: Callable[..., None]) -> None:
    with time_machine.travel(clock.now(), tick=False) as traveller:
        settle_master_key()
        another_process("old")
        keys("new", "old")
        traveller.shift(holders.HOLDS - timedelta(seconds=1))
        assert not settle_master_key()
        traveller.shift(timedelta(seconds=2))
        assert settle_master_key()


def test_a_process_with_the_former_setting_seals_with_its_own_key(db: None, keys: Callable[..., None]) -> None:
    keys("new", "old")
    assert settle_master_key()
    keys("old")
    assert seals() == "old", "the current key is not one of its own"
    keys("old", "new")
    assert seals() == "new"


def test_a_process_with_the_former_setting_takes_nothing_back(db: None, keys: Callable[..., None]) -> None:
    keys("new", "old")
    assert settle_master_key()
    ahead = another_process("new", "old")
    keys("old")
    with capture_logs() as said:
        Presence("worker").note()
    assert current_name(MASTER) == "new"
    assert [(each["event"], each["key_id"]) for each in said] == [("current_master_key_missing", "new")]
    ahead.leave()
    assert settle_master_key(), "all processes have gone back"
    assert current_name(MASTER) == "old"


def test_the_first_process_of_this_release_finds_the_key_in_use(setting: Setting, keys: Callable[..., None]) -> None:
    setting.store()
    assert OrganizationDataKey.objects.get().key_id == "old"
    another_process("old")
    keys("new", "old")
    assert not settle_master_key()
    assert current_name(MASTER) == "old"


def test_a_key_that_became_current_again_counts_from_then(db: None, keys: Callable[..., None]) -> None:
    with time_machine.travel(clock.now(), tick=False) as traveller:
        settle_master_key()
        keys("new", "old")
        settle_master_key()
        traveller.shift(timedelta(days=3))
        keys("old", "new")
        settle_master_key()
        record = KeyRecord.objects.get(kind=MASTER, name="old")
        assert (record.is_current, record.used_from) == (True, clock.now())
        assert record.first_seen_at == clock.now() - timedelta(days=3)


def test_helpers_have_no_keys_and_record_nothing(db: None, settings: LazySettings) -> None:
    settings.CREDENTIAL_KEYRING = Keyring.without_keys()
    assert settle_master_key()
    assert not KeyRecord.objects.exists()


def test_a_process_is_noted_once_and_leaves(db: None, keys: Callable[..., None]) -> None:
    seconds = 0.0
    holder = Holder("worker", key_names=lambda: ["b", "a"], monotonic=lambda: seconds)
    assert holder.is_due()
    holder.note()
    assert not holder.is_due()
    seconds += holders.EVERY_S
    assert holder.is_due()
    holder.note()
    [row] = running(clock.now())
    assert row.name.startswith("worker ")
    assert row.name.endswith(f":{os.getpid()}")
    assert row.key_names == ["b", "a"], "in the order of the setting"
    assert holders_without("c", clock.now()) == [row.name]
    assert led_by_another_key("a", clock.now()) == [row.name]
    assert led_by_another_key("b", clock.now()) == []
    holder.leave()
    assert not KeyHolder.objects.exists()


def test_a_child_of_a_fork_is_another_process(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = Holder("worker", key_names=lambda: {"a"})
    holder.note()
    monkeypatch.setattr(os, "getpid", lambda: 4242)
    assert holder.is_due()
    holder.leave()
    holder.note()
    assert KeyHolder.objects.count() == 2
    holder.leave()
    assert KeyHolder.objects.count() == 1


def test_rows_of_processes_that_ended_long_ago_go(db: None) -> None:
    KeyHolder.objects.create(name="web gone:1", key_names=["a"], seen_at=clock.now() - timedelta(hours=2))
    another_process("a")
    assert KeyHolder.objects.count() == 1


def test_presence_notes_the_other_keys_at_the_start(
    db: None, keys: Callable[..., None], settings: LazySettings
) -> None:
    settings.TOKEN_SIGNING_KEYS = "k-2:ignored,k-1:ignored"
    first = settings.SECRET_KEY
    Presence("web").note()
    settings.SECRET_KEY = "another value of the suite: 0123456789abcdef"
    presence = Presence("web")
    presence.note()
    presence.note()
    found = set(KeyRecord.objects.filter(is_current=True).values_list("kind", "name"))
    assert found == {("master", "old"), ("secret", fingerprint(settings.SECRET_KEY)), ("signing", "k-2")}
    assert KeyRecord.objects.get(name=fingerprint(first)).used_from is not None
    presence.leave()


def test_a_process_that_lacks_the_current_key_says_so(db: None, keys: Callable[..., None]) -> None:
    keys("new", "old")
    with capture_logs() as said:
        Presence("web").note()
    assert said == []
    another_process("new")
    keys("old")
    with capture_logs() as said:
        Presence("web").note()
    assert [(line["event"], line["log_level"], line["key_id"]) for line in said] == [
        ("current_master_key_missing", "error", "new")
    ]


def test_a_fingerprint_tells_values_apart_and_shows_nothing_of_them(settings: LazySettings) -> None:
    one, other = fingerprint(settings.SECRET_KEY), fingerprint(f"{settings.SECRET_KEY}.")
    assert one != other
    assert len(one) == 12
    assert one not in settings.SECRET_KEY
