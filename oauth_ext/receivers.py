"""Receivers of organization events, and of the ends of tokens, keys and clients for the journal."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models.signals import post_delete
from django.dispatch import receiver

from gateway.lib import clock
from gateway.lib.revocation_journal import End, EndKind, note
from oauth_ext.models import AccessToken, AgentKey, Client, Grant, RememberedConsent, TokenFamily, TrustedIssuer
from oauth_ext.services.assertions import end_families_by_domain, unlink_member
from orgs.events import mail_domain_released, member_removed


@receiver(member_removed, dispatch_uid="oauth_ext.end_tokens")
def end_tokens(sender: object, organization_id: UUID, user_id: UUID, **more: Any) -> None:
    """Spec: D45"""
    # All are deleted, so that a person who joins again gets no old token back.
    Grant.objects.filter(organization_id=organization_id, user_id=user_id).delete()
    RememberedConsent.objects.filter(organization_id=organization_id, user_id=user_id).delete()
    families = TokenFamily.objects.filter(organization_id=organization_id, user_id=user_id)
    # Locked first: a concurrent refresh stores its tokens before this query, or not at all.
    held = list(families.select_for_update().order_by("pk").values_list("pk", flat=True))
    TokenFamily.objects.filter(pk__in=held).delete()
    AccessToken.objects.filter(organization_id=organization_id, user_id=user_id).delete()
    unlink_member(organization_id, user_id)


@receiver(post_delete, sender=AgentKey, dispatch_uid="oauth_ext.agent_key_ended")
def note_agent_key(sender: object, instance: AgentKey, **more: Any) -> None:
    note(End(EndKind.AGENT_KEY, str(instance.pk)))


@receiver(post_delete, sender=TokenFamily, dispatch_uid="oauth_ext.token_family_ended")
def note_token_family(sender: object, instance: TokenFamily, **more: Any) -> None:
    note(End(EndKind.TOKEN_FAMILY, str(instance.pk), str(instance.organization_id)))


@receiver(post_delete, sender=AccessToken, dispatch_uid="oauth_ext.access_token_ended")
def note_access_token(sender: object, instance: AccessToken, **more: Any) -> None:
    # Others end with their family, and expired ones stay expired in any copy.
    if instance.token_family_id is None and instance.expires > clock.now():
        note(End(EndKind.ACCESS_TOKEN, str(instance.pk), str(instance.organization_id)))


@receiver(post_delete, sender=Client, dispatch_uid="oauth_ext.service_client_ended")
def note_service_client(sender: object, instance: Client, **more: Any) -> None:
    if instance.is_service_client:
        note(End(EndKind.SERVICE_CLIENT, str(instance.pk), str(instance.organization_id)))


@receiver(post_delete, sender=TrustedIssuer, dispatch_uid="oauth_ext.trusted_issuer_ended")
def note_trusted_issuer(sender: object, instance: TrustedIssuer, **more: Any) -> None:
    note(End(EndKind.TRUSTED_ISSUER, str(instance.pk), str(instance.organization_id)))


@receiver(mail_domain_released, dispatch_uid="oauth_ext.mail_domain_released")
def end_tokens_by_domain(sender: object, organization_id: UUID, domain: str, **more: Any) -> None:
    end_families_by_domain(organization_id, domain)
