"""Rotation of agent keys and client secrets with an overlap, in which the old value counts beside the new one."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine

from audit.models import AdminAuditEntry
from gateway.lib import clock
from gateway.lib.errors import Invalid
from oauth_ext.bearer import InvalidBearer
from oauth_ext.models import AccessToken, AgentKey, Client
from oauth_ext.services.agent_keys import mint_agent_key, revoke_agent_key
from oauth_ext.services.cleanup import remove_expired_rows
from oauth_ext.services.service_clients import RotatedSecret, rotate_client_secret
from tests.api.oauth_ext.conftest import Service, basic, make_service, post
from tests.factories.api import Api
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast
from tests.factories.races import at_once

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def works(agent_key: str) -> bool:
    try:
        return load_identity(agent_key).kind == "agent_key"
    except InvalidBearer:
        return False


def counts(service: Service, client_secret: str) -> bool:
    """Whether the secret gets a token, sent in either way."""
    client_id = service.client.client_id
    in_form = post({"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret})
    in_header = post({"grant_type": "client_credentials"}, Authorization=basic(client_id, client_secret))
    assert in_form.status_code == in_header.status_code
    assert in_form.status_code in (200, 401)
    return in_form.status_code == 200


def test_the_old_key_works_until_the_end_of_the_overlap(cast: Cast, service: Service) -> None:
    admin = cast.user("admin")
    old = mint_agent_key(actor=admin, client=service.client)
    new = mint_agent_key(actor=admin, client=service.client, overlap_hours=1)
    assert new.rotated
    ends_at = AgentKey.objects.get(prefix=old.prefix).ends_at
    assert ends_at is not None
    assert [works(old.agent_key), works(new.agent_key)] == [True, True]
    assert load_identity(old.agent_key).expires_at == ends_at
    assert load_identity(new.agent_key).expires_at == Client.objects.get(pk=service.client.pk).expires_at
    for moment, old_works in ((ends_at - SECOND, True), (ends_at, False), (ends_at + HOUR, False)):
        with time_machine.travel(moment, tick=False):
            assert [works(old.agent_key), works(new.agent_key)] == [old_works, True]
    entry = AdminAuditEntry.objects.get(event_type="agent_key.rotated")
    assert entry.metadata == {
        "client_id": service.client.client_id,
        "prefix": new.prefix,
        "previous_prefix": old.prefix,
        "overlap_hours": 1,
    }


def test_there_is_one_old_key_at_most(cast: Cast, service: Service) -> None:
    first, second, third = (
        mint_agent_key(actor=cast.user("admin"), client=service.client, overlap_hours=24).agent_key for _ in range(3)
    )
    assert [works(each) for each in (first, second, third)] == [False, True, True]
    fourth = mint_agent_key(actor=cast.user("admin"), client=service.client).agent_key
    assert [works(each) for each in (second, third, fourth)] == [False, False, True]
    assert AgentKey.objects.count() == 1


def test_a_revocation_ends_both_keys(cast: Cast, service: Service) -> None:
    keys = [
        mint_agent_key(actor=cast.user("admin"), client=service.client, overlap_hours=24).agent_key for _ in range(2)
    ]
    revoke_agent_key(actor=cast.user("admin"), client=service.client)
    assert [works(each) for each in keys] == [False, False]
    assert not AgentKey.objects.exists()


def test_the_clients_expiry_ends_both_keys(cast: Cast, service: Service) -> None:
    keys = [
        mint_agent_key(actor=cast.user("admin"), client=service.client, overlap_hours=24).agent_key for _ in range(2)
    ]
    soon = clock.now() + HOUR
    Client.objects.update(expires_at=soon)
    assert [load_identity(each).expires_at for each in keys] == [soon, soon]
    with time_machine.travel(soon, tick=False):
        assert [works(each) for each in keys] == [False, False]


def test_the_old_secret_counts_until_the_end_of_the_overlap(cast: Cast, service: Service) -> None:
    token = service.token()
    rotated = rotate_client_secret(actor=cast.user("admin"), client=service.client, overlap_hours=24)
    ends_at = rotated.client.previous_secret_ends_at
    assert ends_at is not None
    # A planned rotation ends no token.
    assert load_identity(token).client_pk == service.client.pk
    for moment, old_counts in ((ends_at - SECOND, True), (ends_at, False), (ends_at + HOUR, False)):
        with time_machine.travel(moment, tick=False):
            assert [counts(service, each) for each in (service.secret, rotated.client_secret)] == [old_counts, True]
    assert not counts(service, "")
    assert not counts(service, "another")
    entry = AdminAuditEntry.objects.get(event_type="service_client.secret_rotated")
    assert entry.metadata == {"client_id": service.client.client_id, "tokens_ended": 0, "overlap_hours": 24}


def test_there_is_one_old_secret_at_most(cast: Cast, service: Service) -> None:
    admin = cast.user("admin")
    second = rotate_client_secret(actor=admin, client=service.client, overlap_hours=24).client_secret
    third = rotate_client_secret(actor=admin, client=service.client, overlap_hours=1).client_secret
    assert [counts(service, each) for each in (service.secret, second, third)] == [False, True, True]
    fourth = rotate_client_secret(actor=admin, client=service.client).client_secret
    assert [counts(service, each) for each in (second, third, fourth)] == [False, False, True]
    assert AccessToken.objects.filter(application=service.client).count() == 2


def test_without_an_overlap_the_old_secret_and_its_tokens_end_at_once(cast: Cast, service: Service) -> None:
    token = service.token()
    new = rotate_client_secret(actor=cast.user("admin"), client=service.client).client_secret
    with pytest.raises(InvalidBearer):
        load_identity(token)
    assert [counts(service, each) for each in (service.secret, new)] == [False, True]


@pytest.mark.parametrize("hours", [-1, 2, 25, 10**9, True, None])
def test_other_overlaps_change_nothing(cast: Cast, service: Service, hours: int) -> None:
    old = mint_agent_key(actor=cast.user("admin"), client=service.client).agent_key
    for rotate in (mint_agent_key, rotate_client_secret):
        with pytest.raises(Invalid) as refused:
            rotate(actor=cast.user("admin"), client=service.client, overlap_hours=hours)
        assert refused.value.fields == {"overlap_hours": ["Must be 0, 1 or 24."]}
    assert works(old)
    assert counts(service, service.secret)
    assert AgentKey.objects.count() == 1


def test_what_ended_is_removed_in_time(cast: Cast, service: Service) -> None:
    admin, other = cast.user("admin"), make_service(cast, name="other")
    for each in (service, other):
        mint_agent_key(actor=admin, client=each.client)
        mint_agent_key(actor=admin, client=each.client, overlap_hours=1 if each is service else 24)
        rotate_client_secret(actor=admin, client=each.client, overlap_hours=1 if each is service else 24)
    remove_expired_rows(now=clock.now() + 2 * HOUR)
    assert AgentKey.objects.filter(client=service.client).count() == 1
    assert AgentKey.objects.filter(client=other.client).count() == 2
    held = dict(Client.objects.filter(previous_secret_ends_at=None).values_list("name", "previous_secret"))
    assert held == {"build bot": ""}


# --- over the API -----------------------------------------------------------------------------------------------------


def test_rotations_over_the_api(api: Api) -> None:
    service = make_service(api.cast)
    path = f"/orgs/{{org}}/service-clients/{service.client.client_id}"
    first = api.send("admin", "POST", f"{path}/agent-key").json()
    second = api.send("admin", "POST", f"{path}/agent-key", {"overlap_hours": 1}).json()
    assert set(second) == {"agent_key", "prefix", "rotated"}
    assert [works(each["agent_key"]) for each in (first, second)] == [True, True]
    answer = api.send("admin", "POST", f"{path}/rotate-secret", {"overlap_hours": 24})
    assert answer.status_code == 201
    rotated = answer.json()
    assert set(rotated) == {"id", "client_id", "client_secret", "previous_secret_ends_at"}
    assert [counts(service, each) for each in (service.secret, rotated["client_secret"])] == [True, True]
    (listed,) = api.get("admin", "/orgs/{org}/service-clients")
    assert listed["previous_secret_ends_at"] == rotated["previous_secret_ends_at"]
    assert listed["previous_agent_key_ends_at"] > listed["agent_key_created_at"]
    assert listed["agent_key_prefix"] == second["prefix"]
    for name in ("agent-key", "rotate-secret"):
        assert api.send("admin", "POST", f"{path}/{name}", {}).status_code == 201
    (listed,) = api.get("admin", "/orgs/{org}/service-clients")
    assert (listed["previous_secret_ends_at"], listed["previous_agent_key_ends_at"]) == (None, None)
    assert not counts(service, rotated["client_secret"])
    assert not works(second["agent_key"])


@pytest.mark.parametrize("name", ["agent-key", "rotate-secret"])
def test_refused_rotations_over_the_api(api: Api, name: str) -> None:
    service, foreign = make_service(api.cast), make_service(api.cast, organization=api.cast.other_org)
    path = f"/orgs/{{org}}/service-clients/{service.client.client_id}/{name}"
    for hours in (2, "1", True, None, 1.0, [1]):
        assert api.faults("admin", "POST", path, {"overlap_hours": hours}) == {"overlap_hours"}
    assert api.refused("member", "POST", path) == (403, "forbidden")
    assert api.refused("other_owner", "POST", path) == (404, "not_found")
    theirs = path.replace(service.client.client_id, foreign.client.client_id)
    assert api.refused("owner", "POST", theirs) == (404, "not_found")
    assert counts(service, service.secret)
    assert not AgentKey.objects.exists()


# --- at once ----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_secrets_rotated_at_once_leave_the_last_two(committed_cast: Cast) -> None:
    service, owner = make_service(committed_cast), committed_cast.user("owner")
    made = at_once(*[lambda: rotate_client_secret(actor=owner, client=service.client, overlap_hours=1)] * 20)
    secrets = [each.client_secret for each in made if isinstance(each, RotatedSecret)]
    assert len(secrets) == 20, made
    assert [counts(service, each) for each in secrets].count(True) == 2
    assert not counts(service, service.secret)
    # As often at once without an overlap: one remains.
    made = at_once(*[lambda: rotate_client_secret(actor=owner, client=service.client)] * 20)
    last = [each.client_secret for each in made if isinstance(each, RotatedSecret)]
    assert [counts(service, each) for each in [*secrets, *last]].count(True) == 1


@pytest.mark.django_db(transaction=True)
def test_keys_rotated_at_once_leave_the_last_two(committed_cast: Cast) -> None:
    client, owner = make_service(committed_cast).client, committed_cast.user("owner")
    first = mint_agent_key(actor=owner, client=client).agent_key
    made = at_once(*[lambda: mint_agent_key(actor=owner, client=client, overlap_hours=24).agent_key] * 50)
    keys = [each for each in made if isinstance(each, str)]
    assert len(keys) == 50, made
    assert [works(each) for each in keys].count(True) == 2
    assert not works(first)
    assert AgentKey.objects.filter(client=client).count() == 2
