"""Sessions live under the hash of their cookie, and otherwise as Django's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext

from gateway import tasks
from gateway.celery import app
from gateway.lib import clock
from gateway.web import sessions
from gateway.web.sessions import SessionStore, stored_key
from tests.factories.cast import Cast


@pytest.fixture
def saved(db: None) -> SessionStore:
    """A session that holds something."""
    session = SessionStore()
    session["page"] = "connections"
    session.save()
    return session


def key_of(session: SessionStore) -> str:
    """The cookie's value."""
    assert session.session_key is not None
    return session.session_key


def test_the_table_holds_no_cookie(saved: SessionStore) -> None:
    row = Session.objects.get()
    assert row.session_key == stored_key(key_of(saved))
    assert key_of(saved) not in f"{row.session_key} {row.session_data}"
    assert len(row.session_key) == 40


def test_a_cookie_finds_its_session(saved: SessionStore) -> None:
    again = SessionStore(key_of(saved))
    assert again["page"] == "connections"
    again["page"] = "setup"
    again.save()
    assert SessionStore(key_of(saved))["page"] == "setup"
    assert Session.objects.count() == 1
    assert saved.exists(key_of(saved))


def test_what_stands_in_the_table_opens_nothing(saved: SessionStore) -> None:
    thief = SessionStore(Session.objects.get().session_key)
    assert "page" not in thief
    assert thief.session_key is None, "a cookie that names no session is not kept"
    assert not saved.exists(stored_key(key_of(saved)))


def test_an_expired_session_is_none(saved: SessionStore) -> None:
    Session.objects.update(expire_date=clock.now() - timedelta(seconds=1))
    assert "page" not in SessionStore(key_of(saved))
    tasks.remove_expired_sessions()
    assert not Session.objects.exists()


def test_the_worker_knows_every_task_of_its_schedule() -> None:
    app.loader.import_default_modules()
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= app.tasks.keys()


@pytest.mark.parametrize("end", [lambda session: session.delete(), lambda session: session.flush()])
def test_an_ended_session_is_gone(saved: SessionStore, end: Callable[[SessionStore], None]) -> None:
    key = key_of(saved)
    end(SessionStore(key))
    assert not Session.objects.exists()
    assert "page" not in SessionStore(key)


def test_a_new_key_ends_the_old_one(saved: SessionStore) -> None:
    old = key_of(saved)
    saved.cycle_key()
    assert key_of(saved) != old
    assert SessionStore(key_of(saved))["page"] == "connections"
    assert "page" not in SessionStore(old)


@pytest.mark.django_db(transaction=True)
def test_the_same_in_an_event_loop() -> None:
    async def walk() -> None:
        session = SessionStore()
        await session.aset("page", "connections")
        await session.asave()
        key = key_of(session)
        assert await session.aexists(key)
        assert not await session.aexists(stored_key(key))
        assert await SessionStore(key).aget("page") == "connections"
        assert await SessionStore(stored_key(key)).aget("page") is None
        await SessionStore(key).adelete()
        assert await SessionStore(key).aget("page") is None

    asyncio.run(walk())


def test_a_browser_stays_signed_in_until_it_signs_out(cast: Cast) -> None:
    browser: Browser = cast.client("owner")
    assert browser.get("/welcome").status_code == 200
    assert browser.cookies["gateway_session"].value not in "".join(
        Session.objects.values_list("session_key", flat=True)
    )
    browser.post("/oidc/logout/")
    assert browser.get("/welcome").status_code == 302


@pytest.mark.django_db
def test_expired_sessions_leave_in_batches_and_living_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "CLEARED_AT_ONCE", 3)
    now = clock.now()
    for number in range(8):
        when = now - timedelta(hours=1) if number < 7 else now + timedelta(hours=1)
        Session.objects.create(session_key=f"{number:040}", session_data="", expire_date=when)
    with CaptureQueriesContext(connection) as captured:
        tasks.remove_expired_sessions()
    assert [row.session_key for row in Session.objects.all()] == [f"{7:040}"]
    assert sum('DELETE FROM "django_session"' in query["sql"] for query in captured) == 3
