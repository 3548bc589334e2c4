"""Sign-ins at vendors: begun on a page, ended once by the callback in the same browser. Spec: contract §8"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction

from credentials.connection_sealing import open_sign_in, seal_sign_in
from credentials.errors import VendorSignInGone
from credentials.models import VendorSignIn
from credentials.vendor_oauth.discovery import Discovered
from credentials.vendor_oauth.requests import OAuthClient
from gateway.lib import clock, secrets
from orgs.locking import lock_for_change
from orgs.models import Membership, User
from orgs.roles import Role

LIFETIME = timedelta(minutes=10)
# Begun and not ended, of one person: the oldest go first.
MAX_OPEN = 20


@dataclass(frozen=True, slots=True)
class Flow:
    """All that the callback needs to know of the server that the person was sent to."""

    issuer: str
    resource: str
    token_endpoint: str
    revocation_endpoint: str
    client_id: str
    auth_method: str
    verifier: str = field(repr=False)
    scopes: str = ""
    names_issuer: str = ""  # "1": its answer names the issuer
    userinfo_endpoint: str = ""


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in that the callback has taken."""

    membership: Membership
    vendor: str
    level: str
    back: str
    flow: Flow


def flow_of(found: Discovered, client: OAuthClient, *, verifier: str, scopes: str) -> Flow:
    server = found.server
    return Flow(
        issuer=server.issuer,
        resource=found.resource,
        token_endpoint=server.token_endpoint,
        revocation_endpoint=server.revocation_endpoint,
        client_id=client.client_id,
        auth_method=client.auth_method,
        verifier=verifier,
        scopes=scopes,
        names_issuer="1" if server.names_issuer else "",
        userinfo_endpoint=server.userinfo_endpoint,
    )


@transaction.atomic
def begin(
    *, membership: Membership, vendor: str, level: str, session_key: str, back: str, flow: Flow, role: Role
) -> str:
    """The state to send. Raises: NotFound, Forbidden."""
    actor: User = membership.user
    lock_for_change(membership.organization_id, actor=actor, role=role)
    now, state = clock.now(), secrets.random_url_safe()
    rows = VendorSignIn.objects.filter(membership__user=actor)
    old = list(rows.order_by("-expires_at").values_list("pk", flat=True)[MAX_OPEN - 1 :])
    VendorSignIn.objects.filter(pk__in=old).delete()
    row = VendorSignIn(
        organization_id=membership.organization_id,
        membership=membership,
        vendor=vendor,
        level=level,
        state_sha256=secrets.sha256(state),
        session_sha256=secrets.sha256(session_key),
        back=back,
        expires_at=now + LIFETIME,
    )
    seal_sign_in(row, {name: getattr(flow, name) for name in Flow.__slots__})
    row.save()
    return state


@transaction.atomic
def take(*, actor: User, session_key: str, state: str) -> Begun:
    """The sign-in with this state, which no other request can take again. Raises: VendorSignInGone."""
    rows = VendorSignIn.objects.select_related("membership__user", "membership__organization")
    row = rows.filter(state_sha256=secrets.sha256(state)).first()
    if row is None or row.expires_at <= clock.now() or row.membership.user_id != actor.pk:
        raise VendorSignInGone
    # Of another browser it stays: its own browser may still finish.
    if not session_key or not secrets.equal(bytes(row.session_sha256), secrets.sha256(session_key)):
        raise VendorSignInGone
    fields = open_sign_in(row)
    taken, _ = VendorSignIn.objects.filter(pk=row.pk).delete()
    if not taken:  # another request was first
        raise VendorSignInGone
    return Begun(row.membership, row.vendor, row.level, row.back, Flow(**fields))


def remove_expired() -> int:
    removed, _ = VendorSignIn.objects.filter(expires_at__lte=clock.now()).delete()
    return removed
