"""The browser sessions on the profile: their list, and that ended ones end at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client as Browser

from audit.models import AdminAuditEntry
from gateway.lib import clock
from gateway.web.sessions import SessionStore, key_of, stored_key
from orgs.errors import SessionEnded
from orgs.models import BrowserSession, Membership
from orgs.roles import Role
from orgs.services.browser_sessions import end_other_sessions, end_session, note_use
from tests.api.pages.conftest import notices, text
from tests.factories.cast import Cast
from tests.factories.races import refusals_at_once

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
EDGE = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/140.0 Safari/537.36 Edg/140.0"


def opened(cast: Cast, who: str, user_agent: str = FIREFOX) -> Browser:
    """A browser that has opened a page."""
    browser = cast.client(who, is_noted=False)
    browser.defaults["HTTP_USER_AGENT"] = user_agent
    assert browser.get("/profile").status_code == 200
    return browser


def key(browser: Browser) -> str:
    return stored_key(browser.cookies[settings.SESSION_COOKIE_NAME].value)


def listed(browser: Browser) -> list[tuple[str, bool]]:
    return [(row.in_words, is_this) for row, is_this in browser.get("/profile").context["sessions"]]


def end(browser: Browser, **form: str) -> Any:
    return browser.post("/profile/sessions", form, follow=True)


def row_of(browser: Browser) -> BrowserSession:
    return BrowserSession.objects.get(session_id=key(browser))


def is_signed_in(browser: Browser) -> bool:
    return browser.get("/api/profile").status_code == 200


def test_own_sessions_are_listed_and_this_one_is_marked(cast: Cast) -> None:
    here, there, other = opened(cast, "member"), opened(cast, "member", EDGE), opened(cast, "other_owner")
    assert sorted(listed(here)) == [("Edge on Windows", False), ("Firefox on Linux", True)]
    assert sorted(listed(there)) == [("Edge on Windows", True), ("Firefox on Linux", False)]
    assert listed(other) == [("Firefox on Linux", True)]
    page = text(here.get("/profile"))
    for browser in (here, there):
        cookie = browser.cookies[settings.SESSION_COOKIE_NAME].value
        assert cookie not in page
        assert stored_key(cookie) not in page


def test_use_is_noted_every_five_minutes(cast: Cast) -> None:
    browser = opened(cast, "member")
    first = row_of(browser)
    for later, moves in ((timedelta(minutes=4), False), (timedelta(minutes=6), True)):
        with time_machine.travel(first.first_seen_at + later, tick=False):
            browser.get("/profile")
            assert (row_of(browser).last_seen_at > first.last_seen_at) is moves
    assert row_of(browser).first_seen_at == first.first_seen_at


def test_one_session_ends_at_once(cast: Cast) -> None:
    here, there = opened(cast, "member"), opened(cast, "member", EDGE)
    assert notices(end(here, session=str(row_of(there).pk))) == ["Signed out of Edge on Windows."]
    assert not is_signed_in(there)
    assert is_signed_in(here)
    assert listed(here) == [("Firefox on Linux", True)]
    (row,) = AdminAuditEntry.objects.all()
    assert (row.event_type, row.org_id, row.metadata) == ("member.sessions_ended", cast.org.id, {"sessions": 1})
    assert (row.actor_id, row.target_id) == (str(cast.user("member").id),) * 2


def test_all_others_end_also_those_that_were_never_noted(cast: Cast) -> None:
    here, there, unseen = opened(cast, "member"), opened(cast, "member", EDGE), cast.client("member", is_noted=False)
    colleague, elsewhere = opened(cast, "admin"), opened(cast, "other_owner")
    Membership.objects.create(organization=cast.other_org, user=cast.user("member"), role=Role.MEMBER.value)
    first_seen_at, former = row_of(here).first_seen_at, key(here)
    assert notices(end(here, others="1")) == ["Signed out of 1 other browser."]
    assert [is_signed_in(each) for each in (here, there, unseen, colleague, elsewhere)] == [
        *(True, False, False, True, True)
    ]
    assert key(here) != former
    assert not Session.objects.filter(pk=former).exists()
    assert row_of(here).first_seen_at == first_seen_at
    assert listed(here) == [("Firefox on Linux", True)]
    rows = AdminAuditEntry.objects.filter(event_type="member.sessions_ended")
    assert {row.org_id for row in rows} == {cast.org.id, cast.other_org.id}


def test_what_is_refused_ends_nothing(cast: Cast) -> None:
    here, there, other = opened(cast, "member"), opened(cast, "member", EDGE), opened(cast, "other_owner")
    for form, notice in (
        ({"session": str(row_of(other).pk)}, "This session has already ended."),
        ({"session": key(there)}, "This session has already ended."),
        ({}, "This session has already ended."),
        ({"session": str(row_of(here).pk)}, "This is the browser you are using. Sign out to end its session."),
    ):
        assert notices(end(here, **form)) == [notice]
    opened_by_address = here.get("/profile/sessions")
    assert (opened_by_address.status_code, opened_by_address["Allow"]) == (405, "POST")
    assert "Go back and use the page" in opened_by_address.content.decode()
    assert Browser().post("/profile/sessions", {"others": "1"}).status_code == 302
    strict = Browser(enforce_csrf_checks=True)
    strict.cookies = here.cookies
    assert strict.post("/profile/sessions", {"others": "1"}).status_code == 403
    assert all(is_signed_in(each) for each in (here, there, other))
    assert not AdminAuditEntry.objects.exists()


def test_signing_out_and_the_providers_word_end_the_row(cast: Cast) -> None:
    here, there = opened(cast, "member"), opened(cast, "member", EDGE)
    there.post("/oidc/logout/")
    assert listed(here) == [("Firefox on Linux", True)]
    idle = opened(cast, "member", EDGE)
    person = cast.user("member")
    person.end_sessions()
    person.save()
    again = opened(cast, "member")
    assert listed(again) == [("Firefox on Linux", True)]
    assert not is_signed_in(idle)


def test_an_ended_session_ends_no_others(cast: Cast) -> None:
    here, there = opened(cast, "member"), opened(cast, "member", EDGE)
    person, session = cast.user("member"), SessionStore(there.cookies[settings.SESSION_COOKIE_NAME].value)
    session.load()
    end(here, session=str(row_of(there).pk))
    with pytest.raises(SessionEnded):
        end_other_sessions(actor=person, session=session, key_of=key_of)
    with pytest.raises(SessionEnded):
        end_session(actor=person, own_key=key(there), session_id=row_of(here).pk)
    assert is_signed_in(here)
    assert not is_signed_in(there)


def test_a_session_that_ended_meanwhile_is_not_noted(cast: Cast) -> None:
    note_use(user_id=cast.user("member").pk, key=stored_key("gone"), user_agent="")
    assert not BrowserSession.objects.exists()
    browser = opened(cast, "member")
    Session.objects.filter(pk=key(browser)).update(expire_date=clock.now())
    SessionStore.clear_expired()
    assert not BrowserSession.objects.exists()


def test_of_browsers_that_sign_each_other_out_one_stays(committed_cast: Cast) -> None:
    person = committed_cast.user("member")
    browsers = [opened(committed_cast, "member") for _ in range(10)]
    sessions = [SessionStore(each.cookies[settings.SESSION_COOKIE_NAME].value) for each in browsers]
    for session in sessions:
        session.load()
    codes = refusals_at_once(
        *[
            lambda session=session: end_other_sessions(actor=person, session=session, key_of=key_of)  # type: ignore[misc]
            for session in sessions
        ]
    )
    assert codes == ["", *["session_ended"] * 9]
    assert BrowserSession.objects.count() == 1
