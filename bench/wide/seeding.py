"""Organizations, callers and credentials straight into the database, in bulk: `python -m bench.wide.seeding`.

Rows are as the services make them: sealed credentials, hashed keys, access tokens signed with the signing key of the
database. Left out are the rows of the administrators' log, which no call reads. A process of its own, with the
environment of the gateway; each line on standard output is `{"progress"}`, the last one `{"organizations": [ids]}`.
Bearers go to a file, in the order of their callers' numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from bench.preparation import catalog
from bench.wide.sizes import SPARE_ORGANIZATIONS, Sizes, has_token, slug
from gateway.supervisor.preparation import load_catalogs, load_settings, migrate_database

AT_ONCE = 250  # organizations in one transaction
FIELD = "apiKey"
SCOPE = "mcp:all"


def catalog_of(vendor_url: str, vendors: int) -> str:
    """Pure: the catalog file of the stand-in's vendors."""
    return "\n".join(catalog(f"{vendor_url}/{number}", slug(number)) for number in range(vendors))


def batches(total: int, at_once: int) -> Iterator[range]:
    """Pure: 0 to `total` in parts."""
    for first in range(0, total, at_once):
        yield range(first, min(first + at_once, total))


class Seeding:
    """Makes organizations; `bearers` and `organizations` grow with each batch. Needs Django."""

    def __init__(self, sizes: Sizes, vendor_key: str, resource: str) -> None:
        """`resource`: the address that the tokens are for."""
        self._sizes, self._resource = sizes, resource
        self._fields = {FIELD: vendor_key}
        self.organizations: list[str] = []
        self.bearers: list[str] = []

    def add(self, numbers: range) -> None:
        """One transaction with these organizations."""
        from django.db import transaction

        from orgs.models import Membership, Organization, User
        from orgs.roles import Role

        owners = [User(email=f"owner-{number}@bench.example", display_name="Bench Owner") for number in numbers]
        for owner in owners:
            owner.set_unusable_password()
        made = [Organization(name=f"Bench organization {number}") for number in numbers]
        pairs = list(zip(made, owners, strict=True))
        with transaction.atomic():
            User.objects.bulk_create(owners)
            Organization.objects.bulk_create(made)
            Membership.objects.bulk_create(
                Membership(organization=each, user=owner, role=Role.OWNER.value) for each, owner in pairs
            )
            self._add_credentials(pairs)
            self._add_callers(pairs)
        self.organizations += [str(each.id) for each in made]

    def _add_credentials(self, pairs: list[tuple[Any, Any]]) -> None:
        from credentials import sealing
        from credentials.credential_scope import CredentialScope
        from credentials.models import Credential, OrganizationDataKey
        from gateway.lib.crypto import KEY_BYTES, seal
        from gateway.lib.keyring import keyring

        scope, version, keys, encoded = CredentialScope.ORGANIZATION, 1, keyring(), sealing._encode(self._fields)
        data_keys, credentials = [], []
        for each, owner in pairs:
            data_key = os.urandom(KEY_BYTES)
            wrapped = keys.wrap(data_key, sealing.data_key_aad(each.id, version))
            data_keys.append(
                OrganizationDataKey(organization=each, version=version, key_id=keys.current_id, wrapped_key=wrapped)
            )
            for vendor in map(slug, range(self._sizes.vendors)):
                row = Credential(
                    organization=each, vendor=vendor, scope=scope.value, data_key_version=version, created_by=owner
                )
                row.sealed = seal(data_key, encoded, sealing._record_aad(each.id, vendor, scope, row.id, version))
                credentials.append(row)
        OrganizationDataKey.objects.bulk_create(data_keys)
        Credential.objects.bulk_create(credentials)

    def _add_callers(self, pairs: list[tuple[Any, Any]]) -> None:
        from oauth_ext.models import AccessToken, AgentKey, Client

        clients: list[Client] = []
        keys: list[AgentKey] = []
        tokens: list[AccessToken] = []
        for each, owner in pairs:
            for number in range(self._sizes.callers):
                client = _client(each, owner, number)
                clients.append(client)
                row, bearer = _token(client, self._resource) if has_token(number) else _key(client, owner)
                (tokens if has_token(number) else keys).append(row)
                self.bearers.append(bearer)
        Client.objects.bulk_create(clients)
        AgentKey.objects.bulk_create(keys)
        AccessToken.objects.bulk_create(tokens)


def _client(organization: Any, owner: Any, number: int) -> Any:
    from django.conf import settings

    from gateway.lib import clock, secrets
    from oauth_ext.models import Client
    from oauth_ext.models.client import SERVICE_CLIENT_ID_PREFIX
    from oauth_ext.services.service_clients import CLIENT_ID_CHARACTERS

    return Client(
        client_id=SERVICE_CLIENT_ID_PREFIX + secrets.random_base62(CLIENT_ID_CHARACTERS),
        client_secret=secrets.random_url_safe(),  # the field stores its hash
        client_type=Client.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Client.GRANT_CLIENT_CREDENTIALS,
        organization=organization,
        name=f"Bench client {number + 1}",
        created_by=owner,
        expires_at=clock.now() + timedelta(days=settings.SERVICE_CLIENT_DEFAULT_DAYS),
    )


def _key(client: Any, owner: Any) -> tuple[Any, str]:
    from gateway.lib import secrets
    from oauth_ext.models import AgentKey
    from oauth_ext.services.agent_keys import random_parts

    parts = random_parts()
    digest = secrets.sha256(parts.secret)
    return AgentKey(client=client, prefix=parts.prefix, secret_sha256=digest, created_by=owner), parts.text()


def _token(client: Any, resource: str) -> tuple[Any, str]:
    """As the client credentials grant makes it."""
    from django.conf import settings
    from oauth2_provider.models import set_token_value

    from gateway.lib import clock
    from oauth_ext.jwt import mint
    from oauth_ext.models import AccessToken

    asked = SimpleNamespace(
        client=client, user=None, organization_id=client.organization_id, scopes=[SCOPE], resource=[resource]
    )
    token = mint.access_token(asked)
    expires = clock.now() + timedelta(seconds=settings.ACCESS_TOKEN_LIFETIME_S)
    row = AccessToken(
        application=client,
        organization_id=client.organization_id,
        scope=SCOPE,
        resource=asked.resource,
        expires=expires,
    )
    set_token_value(row, token)
    return row, token


def seed(sizes: Sizes, *, catalogs: list[Path], vendor_key: str, resource: str, bearers: Path) -> list[str]:
    """The ids of the organizations, the spare one last."""
    from django.db import connection

    from oauth_ext.jwt import keys

    migrate_database()
    load_catalogs(catalogs)
    keys.load_key_set()  # stores the first key, which no transaction may hold
    seeding, began_s, total = Seeding(sizes, vendor_key, resource), time.monotonic(), sizes.organizations
    for numbers in batches(total + SPARE_ORGANIZATIONS, AT_ONCE):
        seeding.add(numbers)
        done = min(numbers.stop, total)
        _say({"progress": f"seeded {done:,} of {total:,} organizations in {time.monotonic() - began_s:.0f} s"})
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # as autovacuum does later
    bearers.write_bytes(msgspec.msgpack.encode(seeding.bearers))
    return seeding.organizations


def _say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.wide.seeding")
    for name in ("organizations", "callers", "vendors"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--catalog", type=Path, action="append", default=[])
    parser.add_argument("--vendor-key", required=True)
    parser.add_argument("--resource", required=True)
    parser.add_argument("--bearers", type=Path, required=True)
    options = parser.parse_args()
    load_settings()
    organizations = seed(
        Sizes(options.organizations, options.callers, options.vendors),
        catalogs=options.catalog,
        vendor_key=options.vendor_key,
        resource=options.resource,
        bearers=options.bearers,
    )
    _say({"organizations": organizations})
    return 0


if __name__ == "__main__":
    sys.exit(main())
