"""A person's browser sessions: noted while they are used, listed, and ended by the person. docs/decisions/0074

`key`: the primary key of the session's row, a hash of the cookie.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import structlog
from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction
from django.utils.crypto import constant_time_compare

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.lib import clock, user_agents
from gateway.lib.rows import required_row
from orgs.errors import OwnSession, SessionEnded
from orgs.locking import lock_active_person
from orgs.models import BrowserSession, KnownBrowser, Membership, User
from orgs.notices import NEW_BROWSER, tell_person

log = structlog.get_logger(__name__)
# Of one person.
SESSIONS_SHOWN = 50


def note_use(*, user_id: UUID, key: str, user_agent: str) -> None:
    """Store that the session is used now. A session that ended meanwhile leaves no row."""
    facts = {
        "last_seen_at": clock.now(),
        "browser": user_agents.browser_of(user_agent),
        "system": user_agents.system_of(user_agent),
    }
    if BrowserSession.objects.filter(session_id=key, user_id=user_id).update(**facts):
        return
    try:
        with transaction.atomic():
            # Its end would wait for this lock, or has deleted the row.
            if Session.objects.select_for_update(no_key=True).filter(pk=key).exists():
                made = BrowserSession.objects.create(session_id=key, user_id=user_id, **facts)
                _tell_of_new_browser(made)
    except IntegrityError:
        log.info("browser session noted by another request")


def _tell_of_new_browser(row: BrowserSession) -> None:
    """A browser that the person has not used before, beside one that the person has."""
    known = KnownBrowser.objects.filter(user_id=row.user_id)
    is_first = not known.exists()
    # The unique constraint decides between two sessions of one browser.
    _, is_new = known.get_or_create(user_id=row.user_id, browser=row.browser, system=row.system)
    if is_new and not is_first:
        tell_person(NEW_BROWSER, row.user, browser=str(row.in_words))


def sessions_in_force(user: User) -> list[BrowserSession]:
    """Last used first."""
    rows = BrowserSession.objects.select_related("session").filter(user=user, session__expire_date__gt=clock.now())
    recent = rows.order_by("-last_seen_at", "id")[:SESSIONS_SHOWN]
    return [row for row in recent if _is_of(row.session, user)]


@transaction.atomic
def end_session(*, actor: User, own_key: str, session_id: UUID) -> BrowserSession:
    """Raises: NotFound; OwnSession; SessionEnded."""
    person = _with_session_in_force(actor, own_key)
    row = required_row(BrowserSession.objects.filter(user=person, pk=session_id))
    if row.session_id == own_key:
        raise OwnSession
    Session.objects.filter(pk=row.session_id).delete()
    _record(person, 1)
    return row


@transaction.atomic
def end_other_sessions(*, actor: User, session: SessionBase, key_of: Callable[[SessionBase], str]) -> int:
    """End all sessions but this one, whether or not they were noted. Return how many were. Raises: SessionEnded."""
    own_key = key_of(session)
    person = _with_session_in_force(actor, own_key)
    others = [row.session_id for row in sessions_in_force(person) if row.session_id != own_key]
    own = BrowserSession.objects.filter(session_id=own_key).first()
    person.end_sessions()
    person.save(update_fields=["password"])
    Session.objects.filter(pk__in=others).delete()
    # This session goes on under a new key and with the person's new digest.
    session.cycle_key()
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    if own is not None:
        own.session_id = key_of(session)
        own.save(force_insert=True)
    _record(person, len(others))
    return len(others)


@transaction.atomic
def end_sessions_as_staff(*, actor: Actor, user_id: UUID) -> int:
    """End all sessions of a person, whether or not they were noted. Return how many were. Raises: NotFound."""
    person = required_row(User.objects.select_for_update(no_key=True).filter(pk=user_id))
    noted = [row.session_id for row in sessions_in_force(person)]
    person.end_sessions()
    person.save(update_fields=["password"])
    Session.objects.filter(pk__in=noted).delete()
    _record(person, len(noted), by=actor)
    return len(noted)


def _with_session_in_force(actor: User, own_key: str) -> User:
    """The person, locked. Raises: SessionEnded, DeactivatedPerson."""
    person = lock_active_person(actor)
    own = Session.objects.filter(pk=own_key, expire_date__gt=clock.now()).first()
    # The request was let in before the lock; another browser may have ended this session since.
    if own is None or not _is_of(own, person):
        raise SessionEnded
    return person


def _is_of(row: Session, user: User) -> bool:
    """Whether the session carries the person's present digest, under the present SECRET_KEY or a former one."""
    carried = str(row.get_decoded().get(HASH_SESSION_KEY, ""))
    digests = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return any(constant_time_compare(carried, digest) for digest in digests)


def _record(person: User, sessions: int, *, by: Actor | None = None) -> None:
    # The log belongs to organizations: each one in which the person has rights.
    memberships = Membership.objects.filter(user=person).order_by("organization_id")
    for org_id in memberships.values_list("organization_id", flat=True):
        record_admin(
            EventType.MEMBER_SESSIONS_ENDED,
            org_id=org_id,
            actor=by or person.as_actor(),
            target=person.as_target(),
            metadata={"sessions": sessions},
        )
