"""An organization outside the path, tried by the nine kinds of callers. Spec: D4, D5, D35, D149"""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.conf import LazySettings
from django.http import HttpResponse

from gateway.coordination.rules import Rule
from gateway.lib import clock
from orgs.models import Membership
from tests.contracts.test_routes import CALLERS, World, world, world_of_module  # noqa: F401

pytestmark = pytest.mark.urls("tests.contracts.chosen_org_urls")
REPORT, ORDER = "/api/test/report", "/api/test/order"
NO_SESSION = {"anonymous", "service JWT", "agent key", "expired JWT"}
PRIMARY = object()  # no org_id at all
MALFORMED_TEXTS = ["", "x", "../orgs", "null"]


def ask(at: World, who: str, method: str, org_id: object) -> HttpResponse:
    """GET and DELETE name the organization in the query, POST in the body."""
    if method == "POST":
        body = {"coupon": "SPRING"} | ({} if org_id is PRIMARY else {"org_id": org_id})
        return at.send(who, "POST", ORDER, body)
    query = "" if org_id is PRIMARY else f"?org_id={org_id}"
    return at.send(who, method, f"{REPORT}{query}", {})


def outcome(answer: HttpResponse) -> tuple[int, str]:
    found = json.loads(answer.content)
    return answer.status_code, found.get("error") or found["id"]


def expected(at: World, who: str, method: str, *, is_primary: bool) -> tuple[int, str]:
    if who in NO_SESSION:
        return 401, "unauthenticated"
    own = str(at.cast.org.id)
    if who == "other_owner" and is_primary:
        own = str(at.cast.other_org.id)
    elif who in {"other_owner", "removed member"}:
        return 404, "not_found"
    elif who not in ({"admin", "owner"} if method == "GET" else {"owner"}):
        return 403, "forbidden"
    return 201 if method == "POST" else 200, own


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("is_primary", [True, False], ids=["primary", "named"])
def test_every_caller(world: World, method: str, is_primary: bool) -> None:  # noqa: F811
    """A person who was removed everywhere has no primary organization, which is 404 as well."""
    org_id = PRIMARY if is_primary else str(world.cast.org.id)
    found = {who: outcome(ask(world, who, method, org_id)) for who in CALLERS}
    assert found == {who: expected(world, who, method, is_primary=is_primary) for who in CALLERS}


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_foreign_unknown_and_malformed_ids_are_the_same_404(world: World, method: str) -> None:  # noqa: F811
    ids = [str(world.cast.other_org.id), str(uuid.uuid4()), str(world.cast.org.id).upper(), *MALFORMED_TEXTS]
    if method == "POST":
        ids += [None, 7, True, [str(world.cast.org.id)], {"id": str(world.cast.org.id)}]  # type: ignore[list-item]
    else:
        ids.append("%00")
    for org_id in ids:
        refused = ask(world, "owner", method, org_id)
        assert outcome(refused) == (404, "not_found"), org_id


def test_two_ids_in_a_query_name_none(world: World) -> None:  # noqa: F811
    twice = f"{world.cast.org.id}&org_id={world.cast.other_org.id}"
    assert outcome(ask(world, "owner", "GET", twice)) == (404, "not_found")


def test_the_primary_organization_is_the_earliest_membership(world: World) -> None:  # noqa: F811
    owner = world.cast.user("owner")
    later = Membership.objects.create(organization=world.cast.other_org, user=owner, role="owner")
    assert outcome(ask(world, "owner", "GET", PRIMARY)) == (200, str(world.cast.org.id))
    assert outcome(ask(world, "owner", "GET", str(later.organization_id))) == (200, str(world.cast.other_org.id))
    Membership.objects.filter(pk=later.pk).update(joined_at=clock.now().replace(year=2001))
    assert outcome(ask(world, "owner", "GET", PRIMARY)) == (200, str(world.cast.other_org.id))


def test_a_body_does_not_name_it_where_the_query_does_and_the_reverse(world: World) -> None:  # noqa: F811
    """One place for each method: a second one that says something else changes nothing."""
    other = str(world.cast.other_org.id)
    asked = world.send("owner", "DELETE", REPORT, {"org_id": other})
    assert outcome(asked) == (200, str(world.cast.org.id))
    ordered = world.send("owner", "POST", f"{ORDER}?org_id={other}", {"coupon": "x"})
    assert outcome(ordered) == (201, str(world.cast.org.id))


@pytest.mark.usefixtures("lapsed")
def test_the_order_of_refusals(world: World, settings: LazySettings) -> None:  # noqa: F811
    own = str(world.cast.org.id)
    assert outcome(ask(world, "member", "POST", own)) == (403, "forbidden")
    assert outcome(ask(world, "owner", "POST", own)) == (402, "subscription_required")
    assert outcome(world.send("owner", "POST", ORDER, {"org_id": own})) == (402, "subscription_required")
    settings.BACKSTOP = Rule(f"backstop {uuid.uuid4()}", limit=1, window_s=60)
    assert outcome(ask(world, "owner", "POST", own)) == (402, "subscription_required")
    assert outcome(ask(world, "owner", "POST", own)) == (429, "rate_limited")
    assert outcome(ask(world, "owner", "POST", str(uuid.uuid4()))) == (429, "rate_limited"), "ids cannot be tried"


def test_bodies_are_checked_after_the_gate(world: World) -> None:  # noqa: F811
    assert outcome(world.send("owner", "POST", ORDER, {"org_id": str(world.cast.org.id)}))[0] == 400
    assert outcome(world.send("stranger", "POST", ORDER, {}))[0] == 404
    browser = world.cast.client("owner")
    for body, status in ((b"{", 400), (b"[]", 400), (b'{"org_id":"a","org_id":"b"}', 400), (b"\xff", 400)):
        assert browser.generic("POST", ORDER, body, content_type="application/json").status_code == status
    member = world.cast.client("member").generic("POST", ORDER, b"{", content_type="application/json")
    assert member.status_code == 403
    assert browser.generic("POST", ORDER, b"a=1", content_type="text/plain").status_code == 415


def test_a_repeated_creation_is_answered_for_its_own_organization_only(world: World) -> None:  # noqa: F811
    owner = world.cast.user("owner")

    def order() -> HttpResponse:
        body: Any = json.dumps({"coupon": "x"})
        headers = {"Idempotency-Key": "k-1"}
        return world.cast.client("owner").generic(  # type: ignore[return-value]
            "POST", ORDER, body, content_type="application/json", headers=headers
        )

    first, again = order(), order()
    assert first.content == again.content
    assert again["Idempotent-Replayed"] == "true"
    other = Membership.objects.create(organization=world.cast.other_org, user=owner, role="owner")
    Membership.objects.filter(pk=other.pk).update(joined_at=clock.now().replace(year=2001))
    moved = order()
    assert outcome(moved) == (201, str(world.cast.other_org.id))
    assert "Idempotent-Replayed" not in moved


def test_the_document_says_where_the_id_goes(db: None) -> None:
    from drf_spectacular.generators import SchemaGenerator

    found = SchemaGenerator().get_schema(request=None, public=True)["paths"]
    for method in ("get", "delete"):
        assert [each["name"] for each in found[REPORT][method]["parameters"]] == ["org_id"]
    named = [each["name"] for each in found[ORDER]["post"].get("parameters", [])]
    assert named == ["Idempotency-Key"]
