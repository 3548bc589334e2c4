"""Rows 49 to 53: what an organization stores for its vendors and agents."""

from __future__ import annotations

from typing import Any

from audit.models import RequestAuditEntry
from bench.page_walk import page_paths
from credentials.models import Credential
from oauth_ext.models import AgentKey
from orgs.services.teams import create_team
from tests.attacks.refusals import refused
from tests.attacks.table import attack
from tests.attacks.things import SECRET, things
from tests.attacks.world import CALL_ROW, World, result
from tests.contracts.test_routes import TABLE
from tests.factories.tenant import connect


@attack(
    49,
    {
        "line ends": ({"apiKey": "a\r\nX-Evil: 1"}, 400, "invalid"),
        "NUL": ({"apiKey": "a\x00"}, 400, "invalid_json"),
        "an unknown field": ({"apiKey": "right-key", "apikey": "x"}, 400, "invalid"),
        "no field": ({}, 400, "invalid"),
        "an object": ({"apiKey": {"nested": "object"}}, 400, "invalid"),
        "a list": ({"apiKey": ["right-key"]}, 400, "invalid"),
        "1 MB": ({"apiKey": "x" * 1_000_000}, 413, "body_too_large"),
    },
)
def fields_of_a_credential(world: World, asked: tuple[dict[str, Any], int, str]) -> None:
    body, status, error = asked
    with world.watched():
        refused(world.send("POST", f"{world.org}/credentials/fake", who="admin", body=body), status, error)


@attack(49)
def a_credential_that_the_vendor_rejects(world: World) -> None:
    Credential.objects.all().delete()
    with world.watched(asks_vendor=True):
        path = f"{world.org}/credentials/fake"
        refused(world.send("POST", path, who="admin", body={"apiKey": "wrong-key"}), 422, "credential_rejected")


@attack(50)
def a_credential_read_back(world: World) -> None:
    """Through every GET of the API, every page, both logs, both exports and the errors that name it."""
    ids = things(world)
    texts: list[str] = []
    with world.watched(asks_vendor=True):
        for method, path in TABLE:
            if method == "GET":
                row = TABLE[method, path]
                texts.append(world.send("GET", (path + row.query).format(**ids), who="owner").text)
        for log in ("/api/audit", "/api/audit/admin"):
            texts.append(world.send("GET", f"{log}?format=csv", who="owner").text)
        pages = [world.send("GET", path, who="owner", accept="text/html") for path in page_paths(ids).values()]
        texts += [page.text for page in pages]
        again = {"name": "Night key", "fields": {"apiKey": SECRET, "apikey": SECRET}}
        texts.append(world.send("POST", f"{world.org}/credentials/fake/keys", who="owner", body=again).text)
        texts.append(world.send("POST", f"{world.org}/credentials/nobody", who="owner", body={"apiKey": SECRET}).text)
    assert [page.status_code for page in pages].count(200) > 25
    assert len(texts) > 60
    assert not [text for text in texts if SECRET in text or SECRET[:12] in text]


@attack(51)
def a_ciphertext_in_the_row_of_another_organization(world: World) -> None:
    ours = Credential.objects.get()
    theirs = connect(world.cast.other_org, world.cast.user("other_owner"), apiKey="theirs")
    Credential.objects.filter(pk=theirs.pk).update(sealed=ours.sealed, data_key_version=ours.data_key_version)
    world.tenant, own = world.other, world.tenant
    token = world.token()
    with world.watched(CALL_ROW):
        refused(world.cli(token), 403, "The stored credentials of Fake cannot be used.")
        answer = result(world.call(token))
        assert answer["isError"] is True
        assert "credentials" in answer["content"][0]["text"]
        codes = set(RequestAuditEntry.objects.values_list("status", "error_code"))
        assert codes == {("denied", "unusable_credentials")}
    world.tenant = own
    assert result(world.call(world.token()))["content"], "the row that was copied from opens as ever"


@attack(52)
def a_team_of_another_organization_for_a_named_key(world: World) -> None:
    team = create_team(actor=world.cast.user("other_owner"), organization=world.cast.other_org, name="Theirs")
    body = {"name": "Night key", "teamId": str(team.id), "fields": {"apiKey": "right-key"}}
    with world.watched():
        refused(world.send("POST", f"{world.org}/credentials/fake/keys", who="admin", body=body), 404, "not_found")


@attack(52)
def a_name_that_is_taken(world: World) -> None:
    things(world)
    body = {"name": "Night key", "fields": {"apiKey": "right-key"}}
    with world.watched(asks_vendor=True):
        answer = world.send("POST", f"{world.org}/credentials/fake/keys", who="admin", body=body)
        refused(answer, 409, "key_name_taken")


def agent_key(world: World, client_id: str = "") -> str:
    return f"{world.org}/service-clients/{client_id or world.tenant.client.client_id}/agent-key"


@attack(53)
def an_agent_key_without_a_plan(world: World) -> None:
    world.settings.BILLING_MODE = "manual"
    with world.watched():
        refused(world.send("POST", agent_key(world), who="admin"), 402, "subscription_required")
    assert world.send("DELETE", agent_key(world), who="admin").status_code == 204, "its end is always allowed"


@attack(53, ("svc_nobody", "no-id", "00000000-0000-4000-8000-000000000000"))
def an_agent_key_of_nobody(world: World, client_id: str) -> None:
    with world.watched():
        for method in ("POST", "DELETE"):
            refused(world.send(method, agent_key(world, client_id), who="admin"), 404, "not_found")


@attack(53)
def the_eleventh_agent_key_in_an_hour(world: World) -> None:
    for _ in range(10):
        assert world.send("POST", agent_key(world), who="admin").status_code == 201
    with world.watched():
        answer = world.send("POST", agent_key(world), who="admin")
        refused(answer, 429, "rate_limited")
        assert 0 < int(answer.headers["Retry-After"]) <= 3600


@attack(53)
def an_agent_key_deleted_twice(world: World) -> None:
    assert world.send("DELETE", agent_key(world), who="admin").status_code == 204
    with world.watched():
        refused(world.send("DELETE", agent_key(world), who="admin"), 404, "not_found")
        assert not AgentKey.objects.filter(client=world.tenant.client).exists()
