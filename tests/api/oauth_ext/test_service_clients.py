"""Making, finding and deleting service clients."""

from __future__ import annotations

import json
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.hashers import check_password
from pytest_django import DjangoCaptureOnCommitCallbacks

from audit.models import AdminAuditEntry
from gateway.coordination import backend, epochs
from gateway.lib import clock
from gateway.lib.errors import Invalid, NotFound
from oauth_ext import selectors
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import AccessToken, AgentKey, Client, ServiceClientVendor
from oauth_ext.services.agent_keys import mint_agent_key
from oauth_ext.services.service_clients import create_service_client, delete_service_client, rotate_client_secret
from oauth_ext.validator import Validator
from tests.api.oauth_ext.conftest import Service, make_service, post
from tests.api.oauth_ext.devices import start_device
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once


def test_create(cast: Cast) -> None:
    created = create_service_client(actor=cast.user("admin"), organization=cast.org, name="  build bot ")
    client = created.client
    client.refresh_from_db()
    assert re.fullmatch(r"svc_[0-9A-Za-z]{24}", client.client_id)
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", created.client_secret)
    assert client.client_secret.startswith("client_sha256$$")
    assert created.client_secret not in client.client_secret
    assert (client.name, client.organization, client.created_by) == ("build bot", cast.org, cast.user("admin"))
    assert client.user is None  # a person who leaves must not take the machine along
    assert client.expires_at is not None
    assert abs(client.expires_at - clock.now() - timedelta(days=90)) < timedelta(minutes=1)
    entry = AdminAuditEntry.objects.get()
    assert (entry.event_type, entry.org_id) == ("service_client.created", cast.org.id)
    assert (entry.actor_id, entry.target_id) == (str(cast.user("admin").id), str(client.id))
    assert created.client_secret not in f"{entry.metadata} {created!r} {client!r} {client}"


@pytest.mark.parametrize("days", [1, 365])
def test_lifetimes_at_the_bounds(cast: Cast, days: int) -> None:
    client = make_service(cast, expires_in_days=days).client
    assert client.expires_at is not None
    assert abs(client.expires_at - clock.now() - timedelta(days=days)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"expires_in_days": 0}, {"expires_in_days"}),
        ({"expires_in_days": -1}, {"expires_in_days"}),
        ({"expires_in_days": 366}, {"expires_in_days"}),
        ({"expires_in_days": True}, {"expires_in_days"}),
        ({"expires_in_days": "30"}, {"expires_in_days"}),
        ({"expires_in_days": 1.5}, {"expires_in_days"}),
        ({"name": "   "}, {"name"}),
        ({"name": "x" * 101}, {"name"}),
        ({"name": "a\u202eb"}, {"name"}),
        ({"name": "", "expires_in_days": 0}, {"name", "expires_in_days"}),
    ],
)
def test_what_is_refused_leaves_nothing(cast: Cast, changes: dict[str, object], fields: set[str]) -> None:
    with pytest.raises(Invalid) as refusal:
        make_service(cast, **changes)
    assert set(refusal.value.fields) == fields
    assert not Client.objects.exists()
    assert not AdminAuditEntry.objects.exists()


def test_delete_takes_everything_along(
    cast: Cast, service: Service, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    service.token()
    mint_agent_key(actor=cast.user("owner"), client=service.client)
    ServiceClientVendor.objects.create(client=service.client, vendor="acme")
    subject = service.client.subject
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        delete_service_client(actor=cast.user("admin"), client=service.client)
    assert len(callbacks) == 2  # the epoch and the journal of ends
    for model in (Client, AccessToken, AgentKey, ServiceClientVendor):
        assert not model._default_manager.exists()
    entry = AdminAuditEntry.objects.get(event_type="service_client.deleted")
    assert (entry.target_label, entry.metadata) == ("build bot", {"client_id": service.client.client_id})
    assert subject == f"svc:{cast.org.id}:{service.client.client_id}"
    with pytest.raises(NotFound):
        delete_service_client(actor=cast.user("admin"), client=service.client)
    assert AdminAuditEntry.objects.filter(event_type="service_client.deleted").count() == 1


async def _epoch(subject: str) -> str:
    found = await backend.current().read_epochs([epochs.subject(subject)])
    assert found is not None
    return found[0]


@pytest.mark.django_db(transaction=True)
def test_each_change_is_news_to_every_process(committed_cast: Cast) -> None:
    from asgiref.sync import async_to_sync

    service = make_service(committed_cast)
    seen = [async_to_sync(_epoch)(service.client.subject)]
    mint_agent_key(actor=committed_cast.user("owner"), client=service.client)
    seen.append(async_to_sync(_epoch)(service.client.subject))
    delete_service_client(actor=committed_cast.user("owner"), client=service.client)
    seen.append(async_to_sync(_epoch)(service.client.subject))
    assert len({*seen, ""}) == 4


def test_a_public_client_is_no_service_client(cast: Cast, public_client: Client) -> None:
    with pytest.raises(NotFound):
        delete_service_client(actor=cast.user("owner"), client=public_client)
    assert Client.objects.filter(pk=public_client.pk).exists()


def test_the_list(cast: Cast, public_client: Client) -> None:
    with_key, without = make_service(cast, name="one"), make_service(cast, name="two")
    make_service(cast, organization=cast.other_org)
    minted = mint_agent_key(actor=cast.user("owner"), client=with_key.client)
    rows = {row.name: row for row in selectors.service_clients(cast.org)}
    assert set(rows) == {"one", "two"}
    assert rows["one"].agent_key_prefix == minted.prefix  # type: ignore[attr-defined]
    assert rows["two"].agent_key_prefix is None  # type: ignore[attr-defined]
    assert [row.pk for row in selectors.service_clients(cast.org)] == [without.client.pk, with_key.client.pk]


def test_one_client_by_either_id(cast: Cast, service: Service) -> None:
    client = service.client
    assert selectors.service_client(cast.org, str(client.id)).pk == client.pk
    assert selectors.service_client(cast.org, client.client_id).pk == client.pk


def test_no_client_of_another_organization(cast: Cast, service: Service, public_client: Client) -> None:
    foreign = make_service(cast, organization=cast.other_org).client
    for wanted in (
        str(foreign.id),
        foreign.client_id,
        str(public_client.id),
        public_client.client_id,
        str(service.client.id).upper(),
        str(uuid.uuid4()),
        "svc_",
        "svc_\x00",
        "",
        "x" * 5000,
    ):
        with pytest.raises(NotFound):
            selectors.service_client(cast.org, wanted)


def test_restricted_vendors(cast: Cast, service: Service) -> None:
    assert selectors.restricted_vendors(service.client.pk) is None
    ServiceClientVendor.objects.create(client=service.client, vendor="acme")
    ServiceClientVendor.objects.create(client=make_service(cast).client, vendor="globex")
    assert selectors.restricted_vendors(service.client.pk) == {"acme"}


def test_tokens_of_the_old_secret_are_dead_at_once(cast: Cast, service: Service) -> None:
    other = make_service(cast)
    old, foreign = service.token(), other.token()
    load_identity(old)
    device = start_device(service)
    device.decide(cast.client("admin"))
    pair = device.poll().json()
    fresh = rotate_client_secret(actor=cast.user("admin"), client=service.client).client_secret
    for dead in (old, pair["access_token"]):
        with pytest.raises(InvalidBearer):
            load_identity(dead)
    assert post(service.fields()).status_code == 401
    renewed = Service(service.client, fresh)
    load_identity(renewed.token())
    load_identity(foreign)
    answer = post(renewed.fields(grant_type="refresh_token", refresh_token=pair["refresh_token"]))
    assert answer.status_code == 200
    load_identity(answer.json()["access_token"])
    entry = AdminAuditEntry.objects.get(event_type="service_client.secret_rotated")
    assert entry.metadata["tokens_ended"] == 2


def test_a_request_that_the_old_secret_began_gets_no_token(
    cast: Cast, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_service(cast)
    device = start_device(service)
    device.decide(cast.client("admin"))
    refresh_token = device.poll().json()["refresh_token"]
    rotated: list[str] = []
    save = Validator.save_bearer_token

    def save_after_a_rotation(self: Validator, token: Any, request: Any, *args: Any, **kwargs: Any) -> None:
        rotated.append(rotate_client_secret(actor=cast.user("admin"), client=service.client).client_secret)
        save(self, token, request, *args, **kwargs)

    monkeypatch.setattr(Validator, "save_bearer_token", save_after_a_rotation)
    answer = post(service.fields())
    assert (answer.status_code, json.loads(answer.content)["error"]) == (401, "invalid_client")
    fresh = Service(service.client, rotated[-1])
    answer = post(fresh.fields(grant_type="refresh_token", refresh_token=refresh_token))
    assert (answer.status_code, json.loads(answer.content)["error"]) == (401, "invalid_client")
    assert not AccessToken.objects.filter(application=service.client).exists()
    load_identity(other.token())
    monkeypatch.setattr(Validator, "save_bearer_token", save)
    fresh = Service(service.client, rotate_client_secret(actor=cast.user("admin"), client=service.client).client_secret)
    assert post(fresh.fields(grant_type="refresh_token", refresh_token=refresh_token)).status_code == 200


def test_no_token_of_the_old_secret_survives_a_rotation_at_the_same_moment(committed_cast: Cast) -> None:
    service = make_service(committed_cast)

    def rotate() -> str:
        return rotate_client_secret(actor=committed_cast.user("admin"), client=service.client).client_secret

    fresh, *answers = at_once(rotate, *[lambda: post(service.fields())] * 12)
    assert isinstance(fresh, str)
    for answer in answers:
        assert not isinstance(answer, Exception)
        assert answer.status_code in {200, 401}
        if answer.status_code == 200:
            with pytest.raises(InvalidBearer):
                load_identity(json.loads(answer.content)["access_token"])
    load_identity(Service(service.client, fresh).token())


def test_a_new_secret_replaces_the_old_one(cast: Cast, service: Service, epochs_to_bump: list[str]) -> None:
    fresh = rotate_client_secret(actor=cast.user("admin"), client=service.client).client_secret
    service.client.refresh_from_db()
    assert len(fresh) == 43
    assert check_password(fresh, service.client.client_secret)
    assert not check_password(service.secret, service.client.client_secret)
    entry = AdminAuditEntry.objects.latest("timestamp")
    assert (entry.event_type, entry.actor_label) == ("service_client.secret_rotated", "Admin")
    assert fresh not in str(entry.__dict__)
    assert epochs_to_bump == [f"subject:{service.client.subject}"]
    with pytest.raises(NotFound):
        rotate_client_secret(actor=cast.user("other_owner"), client=service.client)
