"""The names of people and service clients in both logs: never empty, and never half an e-mail address. Spec: D145"""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from audit.actor import label_of
from audit.models import AdminAuditEntry
from gateway.lib import clock
from oauth_ext.bearer import BearerIdentity
from orgs.models import Membership, User
from orgs.roles import Role
from orgs.services.members import change_role
from proxy.caller_rows import principal_of
from tests.factories.cast import Cast
from tests.factories.tenant import make_tenant

CASES = [
    ({"display_name": "Annie", "first_name": "Ana", "last_name": "Lima"}, "Annie"),
    ({"first_name": "Ana", "last_name": "Lima"}, "Ana Lima"),
    ({"last_name": "Lima"}, "Lima"),
    ({}, "ana@example.com"),
    ({"email": ""}, "user ...1a2b"),
]


def person(**fields: str) -> User:
    key = uuid.UUID("11111111-1111-4111-8111-111111111a2b")
    return User.objects.create_user(**{"id": key, "email": "ana@example.com", **fields})  # type: ignore[arg-type]


def identity(subject: str, org_id: uuid.UUID, user_id: uuid.UUID | None, client_name: str) -> BearerIdentity:
    return BearerIdentity(
        kind="jwt",
        subject=subject,
        org_id=org_id,
        user_id=user_id,
        client_pk=uuid.uuid4(),
        client_id="client-1",
        client_name=client_name,
        scopes=("mcp:all",),
        audiences=(),
        expires_at=clock.now() + timedelta(hours=1),
    )


@pytest.mark.parametrize(("fields", "label"), CASES)
def test_both_logs_name_a_person_alike(cast: Cast, fields: dict[str, str], label: str) -> None:
    ana = person(**fields)
    Membership.objects.create(organization=cast.org, user=ana, role=Role.OWNER.value)
    change_role(actor=ana, organization=cast.org, user_id=cast.user("member").id, role=Role.ADMIN)
    change_role(actor=cast.user("owner"), organization=cast.org, user_id=ana.id, role=Role.ADMIN)
    by_ana, of_ana = AdminAuditEntry.objects.order_by("timestamp", "id")
    assert (by_ana.actor_id, by_ana.actor_label) == (str(ana.id), label)
    assert (of_ana.target_id, of_ana.target_label) == (str(ana.id), label)
    assert principal_of(identity(str(ana.id), cast.org.id, ana.id, "Some app")).label == label


def test_the_name_of_a_profile_stays_what_it_was() -> None:
    assert User(email="ana@example.com").name == "ana"
    assert User(email="").name == ""


def test_a_service_client_goes_by_its_name(cast: Cast) -> None:
    client = make_tenant(cast.org, cast.user("owner")).client
    assert client.as_actor().label == client.name == "build bot"
    assert principal_of(identity(client.subject, cast.org.id, None, client.name)).label == client.name


def test_the_end_of_the_id_is_what_is_left() -> None:
    assert label_of("svc:o:svc_x9z8", "", "") == "user ...x9z8"
