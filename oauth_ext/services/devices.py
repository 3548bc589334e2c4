"""Device authorizations: started by a service client, decided by a person of its organization.

Spec: §3 Device authorization flow, §4.2 · D126-D129
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.lib import clock, secrets
from gateway.lib.client_address import limit_key
from gateway.lib.errors import DomainError
from gateway.lib.sentences import sentence
from oauth_ext import lock_order, user_codes
from oauth_ext.models import Client, Decision, DeviceGrant, UserCodeMiss
from orgs.models import Membership, User
from orgs.roles import Role
from orgs.selectors import membership_row

_MAKING_TRIES = 5  # a collision of 34-bit codes is rare, so five in a row are a fault


class CodeNotValid(DomainError):
    """Wrong, expired, decided, or of another organization: one error for all."""

    code, message, status = (
        "code_not_valid",
        sentence("This code isn’t valid or has expired. Compare it with the device’s screen, or start again there."),
        404,
    )

    def __init__(self, attempts_left: int) -> None:
        super().__init__()
        self.attempts_left = attempts_left  # before TooManyCodes


class TooManyCodes(DomainError):
    """Ten wrong codes within a quarter of an hour. Spec: D126"""

    code, message, status = "rate_limited", sentence("Too many wrong codes. Try again in a few minutes."), 429

    def __init__(self, retry_after_s: int) -> None:
        super().__init__()
        self.headers = {"Retry-After": str(retry_after_s)}


class ClientDisconnected(DomainError):
    """The client was deleted since it authenticated."""

    code, message, status = "invalid_client", sentence("Client authentication failed."), 401


@dataclass(frozen=True, slots=True)
class StartedDevice:
    device_code: str = field(repr=False)  # shown once; stored as a hash
    user_code: str = field(repr=False)
    expires_in_s: int
    interval_s: int


@transaction.atomic
def start_device(*, client: Client, scopes: Sequence[str], resources: Sequence[str], address: str) -> StartedDevice:
    """Raises: ClientDisconnected. Spec: §3 Device authorization flow"""
    if not lock_order.lock(org_id=client.organization_id, user_id=None, client_pk=client.pk):
        raise ClientDisconnected
    device_code, user_code = secrets.random_url_safe(), _unused_user_code()
    now = clock.now()
    DeviceGrant.objects.create(
        device_code_sha256=secrets.sha256(device_code),
        user_code_hash=user_codes.stored(user_code),
        client=client,
        scope=" ".join(scopes),
        resource=list(resources),
        requester_ip=address,
        created_at=now,
        expires_at=now + timedelta(seconds=settings.DEVICE_CODE_TTL),
        interval_s=settings.DEVICE_POLL_INTERVAL,
    )
    return StartedDevice(
        device_code=device_code,
        user_code=user_codes.shown(user_code),
        expires_in_s=settings.DEVICE_CODE_TTL,
        interval_s=settings.DEVICE_POLL_INTERVAL,
    )


def waiting_device(*, actor: User, typed: str, address: str) -> DeviceGrant:
    """Raises: CodeNotValid unless the person may decide about this code now; TooManyCodes. Spec: D126, D127"""
    counted_for = (f"user:{actor.pk}", f"ip:{limit_key(address)}")
    with transaction.atomic():
        # Serialises one person's guesses: parallel ones would all see the count before it rises.
        User.objects.select_for_update(no_key=True).filter(pk=actor.pk).first()
        if _misses_left(counted_for) <= 0:
            raise TooManyCodes(_until_another_guess_s(counted_for))
        found = _found(typed)
        if found is not None and not found.decision and _may_decide(actor, found):
            return found
        # A code that this person decided about is no guess.
        if found is None or found.decided_by_id != actor.pk:
            UserCodeMiss.objects.bulk_create([UserCodeMiss(counted_for=key) for key in counted_for])
        left = _misses_left(counted_for)
    raise CodeNotValid(left)  # outside: the miss stays counted


def decided_device(*, actor: User, typed: str) -> DeviceGrant | None:
    """Returns the device that this person decided about, so that a repeated form shows the same result."""
    found = _found(typed)
    return found if found is not None and found.decision and found.decided_by_id == actor.pk else None


@transaction.atomic
def decide_device(*, actor: User, device: DeviceGrant, decision: Decision) -> bool:
    """Returns False for a second decision or without the right to decide. Spec: §3, §5 (9) · D127, D129"""
    client = device.client
    is_locked = client.organization_id is not None and lock_order.lock(
        org_id=client.organization_id, user_id=actor.pk, client_pk=client.pk
    )
    if not is_locked or client.organization_id is None or not _may_decide(actor, device):
        return False
    now = clock.now()
    waiting = DeviceGrant.objects.filter(pk=device.pk, decision="", expires_at__gt=now)
    # The WHERE clause is the lock: of two decisions, one wins.
    if waiting.update(decision=decision.value, decided_by=actor, decided_at=now) != 1:
        return False
    record_admin(
        EventType.DEVICE_APPROVED if decision is Decision.APPROVED else EventType.DEVICE_DENIED,
        org_id=client.organization_id,
        actor=actor.as_actor(),
        target=client.as_target(),
        metadata={"client_id": client.client_id, "scope": device.scope, "requested_from": device.requester_ip},
    )
    return True


def _unused_user_code() -> str:
    for _ in range(_MAKING_TRIES):
        code = user_codes.new_user_code()
        if not DeviceGrant.objects.filter(user_code_hash__in=user_codes.known(code)).exists():
            return code
    raise RuntimeError("user codes collide more often than chance allows")


def _found(typed: str) -> DeviceGrant | None:
    code = user_codes.read(typed)
    if code is None:
        return None
    rows = DeviceGrant.objects.select_related("client__organization")
    return rows.filter(user_code_hash__in=user_codes.known(code), expires_at__gt=clock.now()).first()


def _may_decide(actor: User, device: DeviceGrant) -> bool:
    client = device.client
    if client.organization_id is None or client.is_expired():
        return False
    membership: Membership | None = membership_row(actor.pk, client.organization_id)
    return membership is not None and membership.has_role(Role(settings.DEVICE_APPROVER_ROLE))


def _misses_left(counted_for: Sequence[str]) -> int:
    counts = [_recent_misses(key).count() for key in counted_for]
    return int(settings.USER_CODE_MISSES) - max(counts)


def _until_another_guess_s(counted_for: Sequence[str]) -> int:
    """Until so many misses have left the window that one is free again."""
    window = timedelta(seconds=settings.USER_CODE_MISSES_WINDOW_S)
    last, now = settings.USER_CODE_MISSES - 1, clock.now()
    newest_first = [
        _recent_misses(key).order_by("-missed_at").values_list("missed_at", flat=True) for key in counted_for
    ]
    full_since = max((at for times in newest_first for at in times[last : last + 1]), default=now - window)
    return max(1, math.ceil((full_since + window - now).total_seconds()))


def _recent_misses(key: str) -> QuerySet[UserCodeMiss]:
    since = clock.now() - timedelta(seconds=settings.USER_CODE_MISSES_WINDOW_S)
    return UserCodeMiss.objects.filter(missed_at__gt=since, counted_for=key)
