"""Minting, replacing and revoking agent keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from io import StringIO
from typing import Never

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from audit.models import AdminAuditEntry
from gateway.coordination import backend, epochs
from gateway.coordination.models import PendingBump
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import clock, secrets
from gateway.lib.errors import Conflict, NotFound
from oauth_ext import agent_key_format
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import AgentKey, Client
from oauth_ext.services.agent_keys import MintedAgentKey, mint_agent_key, revoke_agent_key
from tests.api.oauth_ext.conftest import Service, make_service
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once


def works(agent_key: str) -> bool:
    try:
        return load_identity(agent_key).kind == "agent_key"
    except InvalidBearer:
        return False


def events() -> list[str]:
    rows = AdminAuditEntry.objects.exclude(event_type="service_client.created").order_by("timestamp", "id")
    return list(rows.values_list("event_type", flat=True))


def test_mint_and_rotate(cast: Cast, service: Service) -> None:
    first = mint_agent_key(actor=cast.user("admin"), client=service.client)
    parts = agent_key_format.parse(first.agent_key)
    assert parts is not None
    assert (first.prefix, first.rotated) == (parts.prefix, False)
    assert works(first.agent_key)
    second = mint_agent_key(actor=cast.user("admin"), client=service.client)
    assert second.rotated
    assert works(second.agent_key)
    assert not works(first.agent_key)
    assert AgentKey.objects.count() == 1
    assert events() == ["agent_key.created", "agent_key.rotated"]


def test_what_is_kept_of_a_key(cast: Cast, service: Service) -> None:
    minted = mint_agent_key(actor=cast.user("admin"), client=service.client)
    parts = agent_key_format.parse(minted.agent_key)
    assert parts is not None
    row = AgentKey.objects.get()
    assert (row.prefix, bytes(row.secret_sha256)) == (minted.prefix, secrets.sha256(parts.secret))
    assert row.created_by == cast.user("admin")
    entry = AdminAuditEntry.objects.get(event_type="agent_key.created")
    assert entry.metadata == {"client_id": service.client.client_id, "prefix": minted.prefix}
    assert parts.secret not in f"{minted!r} {minted} {row!r} {row} {entry.metadata}"


def test_revoke(cast: Cast, service: Service) -> None:
    minted = mint_agent_key(actor=cast.user("admin"), client=service.client)
    revoke_agent_key(actor=cast.user("owner"), client=service.client)
    assert not works(minted.agent_key)
    assert events() == ["agent_key.created", "agent_key.revoked"]
    with pytest.raises(NotFound):
        revoke_agent_key(actor=cast.user("owner"), client=service.client)
    assert events() == ["agent_key.created", "agent_key.revoked"]
    assert not mint_agent_key(actor=cast.user("admin"), client=service.client).rotated
    assert service.token()


def test_an_expired_client_gets_no_key_but_loses_one(cast: Cast, service: Service) -> None:
    minted = mint_agent_key(actor=cast.user("admin"), client=service.client)
    Client.objects.update(expires_at=clock.now())
    assert not works(minted.agent_key)
    with pytest.raises(Conflict, match="expired"):
        mint_agent_key(actor=cast.user("admin"), client=service.client)
    assert AgentKey.objects.get().prefix == minted.prefix
    revoke_agent_key(actor=cast.user("admin"), client=service.client)
    assert not AgentKey.objects.exists()


def test_no_key_for_who_is_no_service_client(cast: Cast, service: Service, public_client: Client) -> None:
    with pytest.raises(NotFound):
        mint_agent_key(actor=cast.user("owner"), client=public_client)
    gone = make_service(cast).client
    Client.objects.filter(pk=gone.pk).delete()
    with pytest.raises(NotFound):
        mint_agent_key(actor=cast.user("owner"), client=gone)
    assert not AgentKey.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_keys_minted_at_once_leave_exactly_one_that_works(committed_cast: Cast) -> None:
    actor, client = committed_cast.user("owner"), make_service(committed_cast).client
    for _ in range(5):
        before = AgentKey.objects.count()
        minted = at_once(*[lambda: mint_agent_key(actor=actor, client=client)] * 4)
        assert all(isinstance(each, MintedAgentKey) for each in minted), minted
        kept = [each for each in minted if isinstance(each, MintedAgentKey)]
        assert [works(each.agent_key) for each in kept].count(True) == 1
        assert [each.rotated for each in kept].count(False) == (0 if before else 1)
        assert AgentKey.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_minting_and_deleting_at_once_leave_no_key_behind(committed_cast: Cast) -> None:
    from oauth_ext.services.service_clients import delete_service_client

    actor, client = committed_cast.user("owner"), make_service(committed_cast).client
    minted, deleted = at_once(
        lambda: mint_agent_key(actor=actor, client=client).agent_key,
        lambda: str(delete_service_client(actor=actor, client=client)),
    )
    assert deleted == "None"
    assert isinstance(minted, NotFound) or not works(str(minted))
    assert not AgentKey.objects.exists()


def test_the_command_revokes(committed_cast: Cast) -> None:
    service = make_service(committed_cast)
    minted = mint_agent_key(actor=committed_cast.user("admin"), client=service.client)
    out = StringIO()
    call_command("revoke_agent_key", service.client.client_id, stdout=out)
    assert "no longer works" in out.getvalue()
    assert not works(minted.agent_key)
    assert AdminAuditEntry.objects.get(event_type="agent_key.revoked").actor_id == "system"
    with pytest.raises(CommandError, match="has no agent key"):
        call_command("revoke_agent_key", service.client.client_id)
    with pytest.raises(CommandError, match="no service client svc_nope"):
        call_command("revoke_agent_key", "svc_nope")


def test_the_command_says_when_redis_has_not_taken_the_revocation(
    committed_cast: Cast, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_away(names: Sequence[str]) -> Never:
        raise CoordinationUnavailable("away")

    service = make_service(committed_cast)
    minted = mint_agent_key(actor=committed_cast.user("admin"), client=service.client)
    settings.REDIS_URL = settings.REDIS_URL or "redis://127.0.0.1:9/0"
    monkeypatch.setattr(backend.current(), "bump_epochs", is_away)
    out = StringIO()
    call_command("revoke_agent_key", service.client.client_id, stdout=out)
    assert "is revoked. Redis has not been reached yet" in out.getvalue()
    assert "no longer works" not in out.getvalue()
    assert not works(minted.agent_key)
    assert [row.name for row in PendingBump.objects.all()] == [epochs.subject(service.client.subject)]


def test_expiry_of_the_client_is_the_expiry_of_the_key(cast: Cast) -> None:
    service = make_service(cast, expires_in_days=1)
    minted = mint_agent_key(actor=cast.user("admin"), client=service.client)
    found = load_identity(minted.agent_key)
    assert found.expires_at == service.client.expires_at
    assert found.expires_at - clock.now() < timedelta(days=1)
