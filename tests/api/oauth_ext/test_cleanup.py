"""The cleanup deletes expired and unused rows, and no others."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO
from typing import Any
from unittest.mock import patch

import pytest
from django.core.management import call_command
from oauth2_provider.models import set_token_value
from pytest_django.fixtures import Settings

from gateway.lib import clock
from oauth_ext.models import (
    AccessToken,
    AuthorizationRequest,
    Client,
    DeviceGrant,
    Grant,
    RefreshToken,
    RememberedConsent,
    TokenFamily,
    UserCodeMiss,
)
from oauth_ext.services import cleanup
from oauth_ext.services.cleanup import CleanupCounts, remove_expired_rows
from oauth_ext.services.client_cleanup import is_room_for_another, remove_idle_clients
from oauth_ext.tasks import remove_expired_tokens as task
from tests.factories.cast import Cast

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
NOTHING = CleanupCounts(0, 0, 0, 0, 0, 0, 0, 0)


class Rows:
    """Makes rows of one public client for one person."""

    def __init__(self, cast: Cast, client: Client) -> None:
        self.cast, self.client, self.user = cast, client, cast.user("member")
        self.owned = {"application": client, "user": self.user, "organization": cast.org}
        self.made = 0

    def _name(self) -> str:
        self.made += 1
        return f"made {self.made}"

    def family(self, *, expires_at: datetime, last_used_at: datetime) -> TokenFamily:
        return TokenFamily.objects.create(
            client=self.client,
            user=self.user,
            organization=self.cast.org,
            scope="mcp",
            expires_at=expires_at,
            last_used_at=last_used_at,
        )

    def access(self, expires: datetime, family: TokenFamily | None = None) -> AccessToken:
        row = AccessToken(expires=expires, scope="mcp", token_family=family, **self.owned)
        set_token_value(row, self._name())
        row.save()
        return row

    def refresh(self, family: TokenFamily) -> RefreshToken:
        row = RefreshToken(token_family=family, **self.owned)
        set_token_value(row, self._name())
        row.save()
        return row

    def grant(self, expires: datetime, redeemed_at: datetime | None = None) -> Grant:
        return Grant.objects.create(
            code=self._name(), expires=expires, redeemed_at=redeemed_at, redirect_uri="http://127.0.0.1/", **self.owned
        )

    def request(self, expires_at: datetime) -> AuthorizationRequest:
        return AuthorizationRequest.objects.create(
            client=self.client, user=self.user, session_sha256=b"s", scope="mcp", expires_at=expires_at
        )

    def device(self, expires_at: datetime) -> DeviceGrant:
        name = self._name().encode()
        return DeviceGrant.objects.create(
            client=self.client,
            device_code_sha256=name,
            user_code_hash=name,
            scope="mcp",
            interval_s=5,
            expires_at=expires_at,
        )

    def consent(self, expires_at: datetime) -> RememberedConsent:
        return RememberedConsent.objects.create(
            client=self.client,
            user=self.user,
            organization=self.cast.org,
            scope="mcp",
            redirect_host=self._name(),
            expires_at=expires_at,
        )


def exists(row: Any) -> bool:
    return bool(type(row)._default_manager.filter(pk=row.pk).exists())


def test_expired_rows_go_and_living_rows_stay(cast: Cast, public_client: Client) -> None:
    now = clock.now()
    make = Rows(cast, public_client)
    living = make.family(expires_at=now + SECOND, last_used_at=now - 30 * DAY + SECOND)
    over = make.family(expires_at=now, last_used_at=now)
    idle = make.family(expires_at=now + DAY, last_used_at=now - 30 * DAY)
    alive = [
        living,
        make.refresh(living),
        make.access(now + SECOND),
        make.grant(now + SECOND),
        make.grant(now - DAY, redeemed_at=now - DAY + SECOND),
        make.request(now + SECOND),
        make.device(now - DAY + SECOND),
        make.consent(now + SECOND),
        UserCodeMiss.objects.create(counted_for="x", missed_at=now - timedelta(seconds=899)),
    ]
    dead = [
        over,
        idle,
        make.refresh(over),
        make.refresh(idle),
        make.access(now + DAY, idle),
        make.access(now),
        make.access(now, living),
        make.grant(now),
        make.grant(now - DAY, redeemed_at=now - DAY),
        make.request(now),
        make.device(now - DAY),
        make.consent(now),
        UserCodeMiss.objects.create(counted_for="x", missed_at=now - timedelta(seconds=900)),
    ]
    assert remove_expired_rows(now=now) == CleanupCounts(
        families=2, access_tokens=2, grants=2, requests=1, device_grants=1, consents=1, clients=0, signing_keys=0
    )
    assert [row for row in alive if not exists(row)] == []
    assert [row for row in dead if exists(row)] == []
    assert remove_expired_rows(now=now) == NOTHING


def test_many_rows_go_in_batches(cast: Cast, public_client: Client) -> None:
    make, now = Rows(cast, public_client), clock.now()
    for _ in range(7):
        make.access(now)
    kept = make.access(now + DAY)
    with patch.object(cleanup, "BATCH_ROWS", 3):
        assert remove_expired_rows(now=now).access_tokens == 7
    assert list(AccessToken.objects.all()) == [kept]


def test_the_task_is_the_one_the_schedule_names(cast: Cast, public_client: Client) -> None:
    Rows(cast, public_client).access(clock.now() - DAY)
    assert task.name == "oauth_ext.remove_expired_tokens"
    task()
    assert not AccessToken.objects.exists()


def test_the_command_says_what_is_gone(cast: Cast, public_client: Client) -> None:
    Rows(cast, public_client).access(clock.now() - DAY)
    said = StringIO()
    call_command("cleanup_oauth", stdout=said)
    assert "access tokens 1," in said.getvalue()
    assert "clients 0" in said.getvalue()


def registered(name: str, *, created: datetime, last_used_at: datetime | None = None, source: str = "dcr") -> Client:
    row = Client.objects.create(
        client_id=f"mcpc_{name}",
        client_type=Client.CLIENT_PUBLIC,
        authorization_grant_type=Client.GRANT_AUTHORIZATION_CODE,
        registration_source=source,
        name=name,
        last_used_at=last_used_at,
    )
    Client.objects.filter(pk=row.pk).update(created=created)
    return row


@pytest.fixture
def clients(cast: Cast) -> dict[str, Client]:
    """Clients of every age; which of them must stay says their name."""
    now = clock.now()
    found = {
        "stays: new": registered("new", created=now - DAY + SECOND * 5),
        "stays: used": registered("used", created=now - 200 * DAY, last_used_at=now - 90 * DAY + SECOND * 5),
        "stays: ours": registered("ours", created=now - 200 * DAY, source="manual"),
        "stays: holds tokens": registered("holding", created=now - 200 * DAY, last_used_at=now - 120 * DAY),
        "goes: never used": registered("unused", created=now - DAY),
        "goes: never used, by document": registered("document", created=now - DAY, source="cimd"),
        "goes: idle": registered("idle", created=now - 200 * DAY, last_used_at=now - 90 * DAY),
    }
    Rows(cast, found["stays: holds tokens"]).family(expires_at=now + DAY, last_used_at=now)
    return found


def test_clients_nobody_uses_go(cast: Cast, service: object, clients: dict[str, Client]) -> None:
    service_clients = Client.objects.filter(organization=cast.org).count()
    assert remove_idle_clients(now=clock.now()) == 3
    assert {name for name, row in clients.items() if not exists(row)} == {name for name in clients if "goes" in name}
    assert Client.objects.filter(organization=cast.org).count() == service_clients == 1


def test_a_full_table_gives_up_its_oldest_unused_clients(clients: dict[str, Client], settings: Settings) -> None:
    Client.objects.filter(pk=clients["stays: new"].pk).update(created=clock.now())
    settings.REGISTERED_CLIENTS = 7
    assert is_room_for_another()
    assert exists(clients["goes: never used"])  # there was room without anybody leaving
    settings.REGISTERED_CLIENTS = 6
    assert is_room_for_another()
    gone = {name for name, row in clients.items() if not exists(row)}
    assert gone == {"goes: never used", "goes: never used, by document"}
    settings.REGISTERED_CLIENTS = 2
    assert not is_room_for_another()  # all that is left is used, or had no time to be
    assert {name for name, row in clients.items() if not exists(row)} == gone
