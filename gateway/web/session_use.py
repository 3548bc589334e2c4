"""Notes which browser sessions are used, for the list on the person's profile. docs/decisions/0074"""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.contrib import auth
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from gateway.lib import clock
from gateway.lib.bounded import put_newest
from gateway.web.sessions import key_of
from orgs.models import User
from orgs.services.browser_sessions import note_use

log = structlog.get_logger(__name__)
# A session's use is noted once in this time by each process.
EVERY = timedelta(minutes=5)
_REMEMBERED = 20_000


class SessionUse(MiddlewareMixin):
    _noted: OrderedDict[str, datetime] = OrderedDict()
    _lock = threading.Lock()

    # Before the view: the profile lists the session that asks for it.
    def process_view(self, request: HttpRequest, *view: object) -> None:
        session = request.session
        if settings.SESSION_COOKIE_NAME in request.COOKIES and auth.SESSION_KEY in session:
            self._note(request, key_of(session))

    @classmethod
    def claim(cls, key: str) -> bool:
        """Whether the use is to be noted; once in EVERY."""
        now = clock.now()
        with cls._lock:
            noted = cls._noted.get(key)
            if noted is not None and noted <= now < noted + EVERY:
                return False
            put_newest(cls._noted, key, now, _REMEMBERED)
        return True

    def _note(self, request: HttpRequest, key: str) -> None:
        if not self.claim(key):
            return
        if not isinstance(request.user, User):
            return
        try:
            note_use(user_id=request.user.pk, key=key, user_agent=request.headers.get("User-Agent", ""))
        except (OperationalError, InterfaceError) as fault:
            # The page does not depend on it.
            log.warning("use of a session not noted", reason=type(fault).__name__)
