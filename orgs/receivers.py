from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest

from orgs.signin.session_confirmation import note_confirmation


@receiver(user_logged_in, dispatch_uid="orgs.note_word")
def note_sign_in(sender: object, request: HttpRequest, **more: Any) -> None:
    """The identity provider has just confirmed this session's person."""
    note_confirmation(request.session)
