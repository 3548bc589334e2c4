"""Rows 1 to 8: who asks. A bearer that is none, or is none any more."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import jwt
import time_machine
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from audit.actor import system
from gateway.lib import clock, secrets
from oauth_ext.jwt import keys
from oauth_ext.models import AccessToken
from oauth_ext.services import agent_keys, service_clients
from orgs.services import members, organizations
from tests.api.oauth_ext.flow import make_flow
from tests.attacks.refusals import refused
from tests.attacks.table import attack
from tests.attacks.world import World
from tests.unit.oauth_ext.test_verify import encode, segment

ROUTES = ("/v1/mcp", "/v1/fake/mcp", "/v1/fake/cli")
METADATA = "http://testserver/.well-known/oauth-protected-resource"


def refused_everywhere(world: World, bearer: str | None) -> None:
    """401 on every route of /v1, in the shape of each."""
    for path in ROUTES:
        if path.endswith("cli"):
            refused(world.cli(bearer), 401)
        else:
            refused(world.call(bearer, target=path), 401, "unauthorized" if bearer is None else "invalid_token")
    refused(world.send("GET", "/v1/fake/cli/schema", bearer=bearer), 401)


@attack(1)
def no_bearer(world: World) -> None:
    with world.watched():
        answer = world.call(None)
        refused(answer, 401, "unauthorized")
        challenge = answer.headers["WWW-Authenticate"]
        assert challenge.startswith("Bearer ")
        assert f'resource_metadata="{METADATA}/v1/mcp"' in challenge
        assert "error=" not in challenge
        refused_everywhere(world, None)


@attack(
    2,
    {
        "random": "wrong",
        "a secret of another product": "sk-proj-0123456789abcdefghij",
        "SQL": "'OR/**/1=1--",
        "an agent key of nobody": "cak_aaaaaaaaaaaa_" + "b" * 43,
        "three parts": "a.b.c",
        "64 KB": "a" * 65_536,
    },
)
def a_bearer_that_is_none(world: World, bearer: str) -> None:
    with world.watched():
        answer = world.call(bearer)
        refused(answer, 401, "invalid_token")
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
        assert bearer not in answer.text
        refused_everywhere(world, bearer)


@attack(2)
def an_empty_bearer(world: World) -> None:
    with world.watched():
        refused(world.call(""), 401, "invalid_token")


@attack(2)
def a_head_of_64_kb_on_the_wire(world: World) -> None:
    """By the HTTP server, which counts what follows its first read, or by the reader of bearers."""
    head = b"POST /v1/mcp HTTP/1.1\r\nHost: testserver\r\nContent-Length: 0\r\nAuthorization: Bearer "
    with world.watched():
        answer = world.wire.over_tcp(head + b"a" * 65_536 + b"\r\n\r\n")
        assert answer.status_code in {400, 401, 431}, answer.status_code
        assert "aaaa" not in answer.text


def claims_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return found


def known_as(row: AccessToken, token: str) -> str:
    """The token, which has a row like a real one: only what is wrong with its text can refuse it."""
    row.pk, row.token_checksum, row._state.adding = None, secrets.sha256(token).hex(), True
    row.save(force_insert=True)
    return token


def forged(world: World, changes: dict[str, Any], **headers: Any) -> str:
    """A token with a row, signed by our own key; None leaves a claim out."""
    claims = {**claims_of(world.token()), **changes}
    signer = keys.load_key_set().signer
    payload = {name: value for name, value in claims.items() if value is not None}
    known = {"typ": "at+jwt", "kid": signer.kid, **headers}
    token = jwt.encode(payload, signer.private_key, algorithm="ES256", headers=known)
    return known_as(AccessToken.objects.latest("created"), token)


def unsigned(world: World) -> str:
    token = f"{segment({'typ': 'at+jwt', 'alg': 'none'})}.{segment(claims_of(world.token()))}."
    return known_as(AccessToken.objects.latest("created"), token)


def signed_with_our_public_key(world: World) -> str:
    signer = keys.load_key_set().signer
    public = signer.private_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head = {"typ": "at+jwt", "alg": "HS256", "kid": signer.kid}
    body = f"{segment(head)}.{segment(claims_of(world.token()))}"
    token = f"{body}.{encode(hmac.new(public, body.encode(), hashlib.sha256).digest())}"
    return known_as(AccessToken.objects.latest("created"), token)


def with_other_claims(world: World) -> str:
    """A real token whose middle part says another organization."""
    token = world.token()
    head, _, signature = token.split(".")
    payload = {**claims_of(token), "org_id": str(world.cast.other_org.id)}
    return known_as(AccessToken.objects.latest("created"), f"{head}.{segment(payload)}.{signature}")


@attack(
    3,
    {
        "alg none": unsigned,
        "HS256 with our public key": signed_with_our_public_key,
        "crit unknown": lambda world: forged(world, {}, crit=["other"], other=1),
        "kid of a path": lambda world: forged(world, {}, kid="../../etc/passwd"),
        "kid unknown": lambda world: forged(world, {}, kid="another"),
        "jku": lambda world: forged(world, {}, jku="https://evil.example/keys", kid="evil"),
        "typ of an id token": lambda world: forged(world, {}, typ="JWT"),
        "other claims": with_other_claims,
    },
)
def a_forged_token(world: World, forge: Any) -> None:
    token = forge(world)
    with world.watched():
        refused_everywhere(world, token)


@attack(
    4,
    {
        "expired by a second": lambda now: {"exp": now - 1, "iat": now - 3601},
        "not before in five minutes": lambda now: {"nbf": now + 300},
        "issued in five minutes": lambda now: {"iat": now + 300},
        "another audience": lambda now: {"aud": "https://other.example/v1/mcp"},
        "another issuer": lambda now: {"iss": "https://staging.example"},
        "no organization": lambda now: {"org_id": None},
        "no subject": lambda now: {"sub": None},
        "no end": lambda now: {"exp": None},
    },
)
def a_token_with_a_bad_claim(world: World, change: Any) -> None:
    token = forged(world, change(int(clock.now().timestamp())))
    with world.watched():
        refused_everywhere(world, token)


@attack(4)
def a_good_token_an_hour_later(world: World) -> None:
    token = world.token()
    with world.watched(), time_machine.travel(clock.now() + timedelta(seconds=3601), tick=False):
        refused_everywhere(world, token)


@attack(5, ("access_token", "bearer", "token", "authorization"))
def a_token_in_the_query(world: World, name: str) -> None:
    token = world.token()
    with world.watched():
        for path in ROUTES:
            answer = world.send("POST", f"{path}?{name}={token}", body={"tool": "list"})
            refused(answer, 401, None if path.endswith("cli") else "unauthorized")
            assert token not in answer.text


@attack(5)
def a_token_in_the_form(world: World) -> None:
    token = world.token()
    with world.watched():
        refused(world.send("POST", "/v1/mcp", form={"access_token": token}), 401, "unauthorized")


@attack(6)
def an_agent_key_elsewhere_than_at_the_unified_endpoint(world: World) -> None:
    key = world.tenant.agent_key
    with world.watched():
        refused(world.cli(key), 401)
        refused(world.call(key, target="/v1/fake/mcp"), 401, "invalid_token")
        refused(world.send("GET", "/v1/fake/cli/schema", bearer=key), 401)


def rotated(world: World) -> str:
    agent_keys.mint_agent_key(actor=world.cast.user("owner"), client=world.tenant.client)
    return world.tenant.agent_key


def deleted(world: World) -> str:
    agent_keys.revoke_agent_key(actor=world.cast.user("owner"), client=world.tenant.client)
    return world.tenant.agent_key


def with_another_secret(world: World) -> str:
    return world.tenant.agent_key[:-43] + "a" * 43


def with_the_stored_hash(world: World) -> str:
    """A thief of the database has it."""
    key = world.tenant.agent_key
    return key[:-43] + encode(secrets.sha256(key[-43:]))


@attack(
    7,
    {
        "rotated": rotated,
        "deleted": deleted,
        "right prefix, wrong secret": with_another_secret,
        "right prefix, stored hash": with_the_stored_hash,
    },
)
def an_agent_key_that_is_over(world: World, end: Any) -> None:
    assert world.call(world.tenant.agent_key).status_code == 200
    key = end(world)
    with world.watched():
        found = refused(world.call(key), 401, "invalid_token")
        nobodys = refused(world.call("cak_aaaaaaaaaaaa_" + "b" * 43), 401, "invalid_token")
        # By its answer nobody learns whether the prefix exists.
        assert json.dumps(found) == json.dumps(nobodys)


def of_a_removed_member(world: World) -> str:
    token = str(make_flow(world.cast).tokens()["access_token"])
    assert world.rpc(token, "ping").status_code == 200
    members.remove_member(
        actor=world.cast.user("owner"), organization=world.cast.org, user_id=world.cast.user("member").pk
    )
    return token


def of_a_deleted_organization(world: World) -> str:
    token = world.token()
    assert world.rpc(token, "ping").status_code == 200
    organizations.delete_organization(actor=world.cast.user("owner"), organization=world.cast.org)
    return token


def of_a_deleted_client(world: World) -> str:
    token = world.token()
    assert world.rpc(token, "ping").status_code == 200
    service_clients.delete_service_client(actor=world.cast.user("owner"), client=world.tenant.client)
    return token


def of_a_deactivated_person(world: World) -> str:
    from oauth_ext.services.deactivation import deactivate_person

    token = str(make_flow(world.cast).tokens()["access_token"])
    assert world.rpc(token, "ping").status_code == 200
    deactivate_person(actor=system("test"), user_id=world.cast.user("member").pk)
    return token


@attack(
    8,
    {
        "removed member": of_a_removed_member,
        "deleted organization": of_a_deleted_organization,
        "deleted service client": of_a_deleted_client,
        "deactivated person": of_a_deactivated_person,
    },
)
def a_token_whose_subject_has_gone(world: World, end: Any) -> None:
    """The process that knew the token refuses the next call."""
    token = end(world)
    with world.watched():
        refused_everywhere(world, token)
