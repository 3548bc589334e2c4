"""Security notices: who is told of a change. docs/decisions/0097"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from audit.actor import Actor
from audit.admin_log import label_with_token
from gateway.lib import clock
from gateway.mail.kinds import MailKind, Purpose, register
from gateway.mail.outbox import Recipient, is_on, queue_mail
from gateway.mail.selectors import counts_since
from orgs.models import Membership, Organization, User
from orgs.roles import Role

# An admin's script, or an admin who means harm, must not fill mailboxes and the outbox.
NOTICES_AN_HOUR, AN_HOUR = 20, timedelta(hours=1)


def _notice(name: str, label: str | Promise, subject: str | Promise) -> MailKind:
    return register(MailKind(name=name, purpose=Purpose.SECURITY, label=label, subject=subject))


NEW_OWNER = _notice(
    "new_owner", gettext_lazy("New owners"), gettext_lazy("%(person)s is now an owner of %(organization)s")
)
OWNER_REMOVED = _notice(
    "owner_removed",
    gettext_lazy("Removed owners"),
    gettext_lazy("%(person)s is no longer an owner of %(organization)s"),
)
NEW_AGENT_KEY = _notice(
    "new_agent_key", gettext_lazy("New agent keys"), gettext_lazy("New key for the agent %(agent)s in %(organization)s")
)
CREDENTIAL_REPLACED = _notice(
    "credential_replaced",
    gettext_lazy("Replaced credentials"),
    gettext_lazy("Credentials for %(vendor)s were replaced in %(organization)s"),
)
NEW_BROWSER = _notice("new_browser", gettext_lazy("New browsers"), gettext_lazy("New sign-in: %(browser)s"))
KINDS = (NEW_OWNER, OWNER_REMOVED, NEW_AGENT_KEY, CREDENTIAL_REPLACED, NEW_BROWSER)


def recipient_of(user: User) -> Recipient | None:
    """None for a person without a verified address: anybody may have claimed it."""
    return Recipient(user.email, user.language) if user.email_verified and user.is_active else None


def recipients_of(users: Iterable[User]) -> list[Recipient]:
    return [each for each in map(recipient_of, users) if each is not None]


def has_role_by_address(address: str, organization_id: UUID | None, roles: Collection[Role]) -> bool:
    """Whether a message that waited is still for its recipient: an active member with one of these roles."""
    if organization_id is None:
        return False
    rows = Membership.objects.filter(organization_id=organization_id, role__in=[role.value for role in roles])
    return rows.filter(user__is_active=True, user__email_verified=True, user__email__iexact=address).exists()


def owners_of(organization_id: UUID) -> list[User]:
    """Active owners, earliest first."""
    rows = Membership.objects.select_related("user").filter(organization_id=organization_id, role=Role.OWNER.value)
    return [row.user for row in rows.filter(user__is_active=True).order_by("joined_at", "id")]


def tell_owners(
    kind: MailKind, *, organization_id: UUID, actor: User | Actor, also: Iterable[User] = (), **facts: object
) -> None:
    """Queue a notice to the owners and the persons concerned, with the organization, the actor and the time.

    Of one kind, an address gets NOTICES_AN_HOUR; the last one says that further ones are in the admin log alone.
    """
    if not is_on():
        return
    now = clock.now()
    name = Organization.objects.values_list("name", flat=True).get(pk=organization_id)
    by = label_with_token(actor.as_actor())
    told = {"organization": name, "org_id": str(organization_id), "actor": by, "happened_at": now, **facts}
    had = counts_since(kind, organization_id, now - AN_HOUR)
    for each in {each.address: each for each in recipients_of([*owners_of(organization_id), *also])}.values():
        left = NOTICES_AN_HOUR - had.get(each.address, 0)
        if left > 0:
            queue_mail(kind, [each], organization_id=organization_id, facts={**told, "is_last": left == 1})


def tell_person(kind: MailKind, person: User, **facts: object) -> None:
    """Queue a notice to one person about the person's own account."""
    told = {"happened_at": clock.now(), **facts}
    queue_mail(kind, recipients_of([person]), organization_id=None, facts=told)
