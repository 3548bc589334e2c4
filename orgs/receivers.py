from __future__ import annotations

from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.http import HttpRequest

from gateway.lib import clock
from gateway.lib.revocation_journal import End, EndKind, note, session_id
from orgs.models import MailDomain, ManagementToken, Membership, Organization, User
from orgs.signin.session_confirmation import note_confirmation


@receiver(user_logged_in, dispatch_uid="orgs.note_word")
def note_sign_in(sender: object, request: HttpRequest, **more: Any) -> None:
    """The identity provider has just confirmed this session's person."""
    note_confirmation(request.session)


@receiver(post_delete, sender=Organization, dispatch_uid="orgs.organization_ended")
def note_organization(sender: object, instance: Organization, **more: Any) -> None:
    note(End(EndKind.ORGANIZATION, str(instance.pk)))


@receiver(post_delete, sender=Membership, dispatch_uid="orgs.membership_ended")
def note_membership(sender: object, instance: Membership, **more: Any) -> None:
    note(End(EndKind.MEMBERSHIP, str(instance.user_id), str(instance.organization_id)))


@receiver(post_delete, sender=ManagementToken, dispatch_uid="orgs.management_token_ended")
def note_management_token(sender: object, instance: ManagementToken, **more: Any) -> None:
    # An expired one stays expired in any copy.
    if not instance.is_expired(clock.now()):
        note(End(EndKind.MANAGEMENT_TOKEN, str(instance.pk), str(instance.membership.organization_id)))


@receiver(post_delete, sender=MailDomain, dispatch_uid="orgs.mail_domain_released")
def note_mail_domain(sender: object, instance: MailDomain, **more: Any) -> None:
    note(End(EndKind.MAIL_DOMAIN, str(instance.pk), str(instance.organization_id)))


@receiver(post_delete, sender=Session, dispatch_uid="orgs.session_ended")
def note_session(sender: object, instance: Session, **more: Any) -> None:
    # A session without a sign-in opens nothing.
    if instance.expire_date > clock.now() and SESSION_KEY in instance.get_decoded():
        note(End(EndKind.SESSION, session_id(instance.pk)))


@receiver(post_delete, sender=User, dispatch_uid="orgs.person_removed")
def note_removed_person(sender: object, instance: User, **more: Any) -> None:
    note(End(EndKind.PERSON, str(instance.pk)))


@receiver(post_save, sender=User, dispatch_uid="orgs.person_changed")
def note_changed_person(
    sender: object, instance: User, created: bool, update_fields: frozenset[str] | None = None, **more: Any
) -> None:
    """A person's rights end by a change of the row. Each save that may have ended them is noted."""
    if created:
        return
    fields = update_fields or {"is_active", "is_staff"}
    if "is_active" in fields and not instance.is_active:
        note(End(EndKind.PERSON, str(instance.pk)))
    if "is_staff" in fields and not instance.is_staff:
        note(End(EndKind.SUPPORT_ACCESS, str(instance.pk)))
    if instance.has_ended_sessions:
        instance.has_ended_sessions = False
        note(End(EndKind.PERSON_SESSIONS, str(instance.pk)))
