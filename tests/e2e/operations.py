"""The actions of an operator or a page on a deployment: a program that runs services of the product by name.

`python -m tests.e2e.operations` in the deployment's environment. Each line of standard input is
`{"name", "arguments"}`, each line of standard output its `{"result"}` or `{"error"}`.
"""

from __future__ import annotations

import io
import json
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any
from uuid import UUID

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import CommandError, call_command  # noqa: E402
from django.db import connection, connections, transaction  # noqa: E402

from audit import partitions  # noqa: E402
from audit.shipping import destinations  # noqa: E402
from billing.models import ProviderCancellation, ProviderEvent, Subscription  # noqa: E402
from credentials.credential_scope import CredentialScope  # noqa: E402
from credentials.models import Credential, OrganizationDataKey  # noqa: E402
from credentials.selectors import credential, credential_summaries  # noqa: E402
from credentials.services.credentials import delete_credential, store_credential  # noqa: E402
from credentials.services.vendor_question_rules import change_question_rules  # noqa: E402
from gateway.catalog import registry  # noqa: E402
from gateway.coordination import backend as coordination  # noqa: E402
from gateway.lib import clock  # noqa: E402
from oauth_ext.models import Client  # noqa: E402
from oauth_ext.selectors import service_client_of_any_organization  # noqa: E402
from oauth_ext.services import acting, agent_keys, service_client_vendors, service_clients, trusted_issuers  # noqa: E402
from orgs.models import Identity, Membership, Organization, User  # noqa: E402
from orgs.roles import Role  # noqa: E402
from orgs.services import members, server_access, tool_access  # noqa: E402
from orgs.services.organizations import create_organization as create  # noqa: E402
from orgs.services.organizations import delete_organization as delete  # noqa: E402
from tests.e2e import connection_operations  # noqa: E402
from tests.factories import catalog_text  # noqa: E402
from tests.factories.cast import signed_in_session  # noqa: E402


def load_catalog(text: str) -> None:
    """The vendors of a catalog text are there."""
    catalog_text.load_catalog(text, "the test's catalog")


def create_organization(name: str) -> str:
    """The id of a new organization with an owner of its own."""
    owner = User.objects.create_user(email=f"{name.lower()}@example.com", display_name=f"Owner of {name}")
    return str(create(actor=owner, name=name).id)


def connect_vendor(org_id: str, vendor: str, fields: dict[str, str]) -> None:
    """The organization has a credential for the vendor, which was not asked about it."""
    known = registry.vendor_or_none(vendor)
    assert known is not None, vendor
    store_credential(
        actor=_owner(org_id),
        organization=_organization(org_id),
        vendor=known,
        scope=CredentialScope.ORGANIZATION,
        fields=fields,
    )


def let_ask(org_id: str, vendor: str, kinds: list[str]) -> None:
    """The vendor may ask the organization's callers these kinds of questions."""
    found = registry.known_vendor(vendor)
    change_question_rules(actor=_owner(org_id), organization=_organization(org_id), vendor=found, allowed=kinds)


def create_log_destination(org_id: str, url: str) -> str:
    """The id of a webhook that gets the organization's logs."""
    with transaction.atomic():
        made = destinations.create(
            org_id=UUID(org_id),
            actor=_owner(org_id).as_actor(),
            label="Receiver",
            platform="webhook",
            endpoint_url=url,
            config={"secret": "a secret of the test's own"},
        )
    return str(made.id)


def drop_partitions_ahead() -> list[str]:
    """The names of the request log's partitions that begin in a month to come; they are gone."""
    next_month = partitions.month_of(clock.now(), later=1)
    names = [each.name for each in partitions.partitions() if each.start is not None and each.start >= next_month]
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f'DROP TABLE "{name}"')
    return names


def disconnect_vendor(org_id: str, vendor: str) -> None:
    """The organization has no credential for the vendor."""
    organization = _organization(org_id)
    for row in credential_summaries(organization, vendor=vendor):
        delete_credential(actor=_owner(org_id), credential=credential(organization, row.id))


def create_service_client(org_id: str, name: str) -> dict[str, str]:
    """A service client with an agent key: its `client_id`, `client_secret`, `agent_key` and `subject`."""
    actor = _owner(org_id)
    created = service_clients.create_service_client(actor=actor, organization=_organization(org_id), name=name)
    minted = agent_keys.mint_agent_key(actor=actor, client=created.client)
    return {
        "client_id": created.client.client_id,
        "client_secret": created.client_secret,
        "agent_key": minted.agent_key,
        "subject": created.client.subject,
    }


def trust_issuer(org_id: str, client_id: str, issuer: str, subject: str) -> None:
    """The organization trusts the issuer, whose `subject` is the owner, and the service client may act for people."""
    owner, organization = _owner(org_id), _organization(org_id)
    Identity.objects.create(user=owner, issuer=issuer, sub=subject)
    acting.set_acting(actor=owner, organization=organization, client=_client(client_id), acts_for_people=True)
    trusted_issuers.add_issuer(actor=owner, organization=organization, wanted=trusted_issuers.Wanted(issuer))


def create_service_clients(org_id: str, count: int) -> list[dict[str, str]]:
    """So many of them, as `create_service_client` makes one."""
    return [create_service_client(org_id, f"bot {number}") for number in range(count)]


def rotate_agent_key(client_id: str) -> str:
    """The new key."""
    client = _client(client_id)
    return agent_keys.mint_agent_key(actor=_owner(str(client.organization_id)), client=client).agent_key


def revoke_agent_key(client_id: str) -> None:
    """The service client has no key."""
    client = _client(client_id)
    agent_keys.revoke_agent_key(actor=_owner(str(client.organization_id)), client=client)


def delete_service_client(client_id: str) -> None:
    """The service client is gone."""
    client = _client(client_id)
    service_clients.delete_service_client(actor=_owner(str(client.organization_id)), client=client)


def delete_organization(org_id: str) -> None:
    """The organization no longer exists."""
    delete(actor=_owner(org_id), organization=_organization(org_id))


def end_session(cookie: str) -> None:
    """The session is signed out."""
    import_module(settings.SESSION_ENGINE).SessionStore(cookie).flush()


def data_keys(org_id: str) -> int:
    """How many keys there are that open the organization's credentials."""
    return OrganizationDataKey.objects.filter(organization_id=org_id).count()


def restrict_to_vendors(client_id: str, vendors: list[str]) -> None:
    """The service client may use exactly these vendors."""
    client = _client(client_id)
    org_id = str(client.organization_id)
    service_client_vendors.replace_client_vendors(
        actor=_owner(org_id), organization=_organization(org_id), client=client, vendors=vendors
    )


def add_member(org_id: str, email: str, vendors: list[str]) -> str:
    """The id of a new person who is a member and may use these vendors."""
    organization, owner = _organization(org_id), _owner(org_id)
    user = User.objects.create_user(email=email, display_name=email)
    members.add_member(actor=owner.as_actor(), organization=organization, user=user, role=Role.MEMBER)
    server_access.replace_member_vendors(actor=owner, organization=organization, user_id=user.pk, vendors=vendors)
    return str(user.pk)


def allow_tools(org_id: str, vendor: str, tools: list[str]) -> None:
    """Members, and with them service clients, may call exactly these tools of the vendor."""
    tool_access.set_allowlist(
        actor=_owner(org_id), organization=_organization(org_id), vendor=vendor, role=Role.MEMBER.value, tools=tools
    )


def bump_epoch(name: str) -> None:
    """Every cache entry that depends on `name` is dead."""
    coordination.current().bump_epochs([name])


def sign_in_owner(org_id: str) -> str:
    """The cookie of a session in which the owner is signed in."""
    return signed_in_session(_owner(org_id))


def manage(arguments: list[str]) -> dict[str, Any]:
    """The `code` and the `output` of a management command, without the start of a process of its own."""
    output = io.StringIO()
    try:
        call_command(*arguments, stdout=output)
    except CommandError as fault:
        return {"code": fault.returncode, "output": output.getvalue()}
    except SystemExit as end:
        return {"code": end.code, "output": output.getvalue()}
    return {"code": 0, "output": output.getvalue()}


def forget_plans() -> None:
    """No organization has ever subscribed, and none waits for the provider."""
    for kind in (Subscription, ProviderEvent, ProviderCancellation):
        kind.objects.all().delete()


def run_task(name: str) -> Any:
    """The result of a scheduled task, as the worker runs it: `billing.reconcile` is in billing/tasks.py."""
    app, _, function = name.partition(".")
    return getattr(import_module(f"{app}.tasks"), function)()


def sealed_credential() -> str:
    """A piece of a stored credential as it lies in the database."""
    return bytes(Credential.objects.latest("updated_at").sealed).hex()[:64]


def session_with(value: str) -> str:
    """The value, which some session holds now."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session["planted"] = value
    session.save()
    return value


def _organization(org_id: str) -> Organization:
    return Organization.objects.get(pk=org_id)


def _owner(org_id: str) -> User:
    return Membership.objects.select_related("user").get(organization_id=org_id, role="owner").user


def _client(client_id: str) -> Client:
    return service_client_of_any_organization(client_id)


OPERATIONS: dict[str, Callable[..., Any]] = {
    operation.__name__: operation
    for operation in (
        load_catalog,
        create_organization,
        connect_vendor,
        create_log_destination,
        drop_partitions_ahead,
        disconnect_vendor,
        let_ask,
        create_service_client,
        trust_issuer,
        create_service_clients,
        rotate_agent_key,
        revoke_agent_key,
        delete_service_client,
        delete_organization,
        end_session,
        data_keys,
        restrict_to_vendors,
        add_member,
        allow_tools,
        bump_epoch,
        sign_in_owner,
        manage,
        forget_plans,
        run_task,
        sealed_credential,
        session_with,
        *connection_operations.OPERATIONS,
    )
}


def main() -> None:
    """Answer until standard input ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        connections.close_all()  # the server may have been restarted since the last operation
        try:
            answer = {"result": OPERATIONS[asked["name"]](**asked["arguments"])}
        except Exception as fault:
            traceback.print_exc()
            answer = {"error": f"{type(fault).__name__}: {fault}"}
        print(json.dumps(answer), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
