"""Callers that a process does not know yet: CPU time and memory of each, and of finding a credential by its holder.

    BENCH_DATABASE_URL=postgres://postgres@127.0.0.1:5432/postgres python -m bench.callers [--organizations 400]

Makes a database of its own. CPU time is that of this process, its threads included; epochs come from memory, so that
the figures are those of the database reads alone. Memory is what the Python allocator gave, without its own overhead.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
import tracemalloc
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from bench.databases import own_database
from gateway.coordination.returns import Returns

PEOPLE = 4  # of each organization, beside one service client
VENDORS = ("acme", "globex", "initech")
NAMED_KEYS = (10, 100, 1_000)
ADDRESS = "127.0.0.1"
Bearers = list[list[str]]  # by organization: its people's tokens, then its agent key


class Epochs:
    """A store that has every epoch and knows no interruption."""

    returns = Returns()

    async def read_epochs(self, names: Sequence[str]) -> tuple[str, ...]:
        return ("0" * 32,) * len(names)


def configure(url: str) -> None:
    folder = tempfile.mkdtemp(prefix="bench-callers-")
    os.environ.update(
        DATABASE_URL=url,
        DJANGO_SETTINGS_MODULE="gateway.settings",
        GATEWAY_MODE="embedded",
        GATEWAY_PROCESS="web",
        VAR=folder,
        SECRET_KEY="only for a measurement on this computer: 0123456789",
        CREDENTIAL_KEYS="bench:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        BASE_URL="http://localhost",
        LOG_LEVEL="ERROR",
    )
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def seed(organizations: int) -> Bearers:
    from django.db import transaction

    from oauth_ext.jwt import keys

    keys.load_key_set()  # stores the first key, which no transaction may hold
    with transaction.atomic():
        return [_organization(number) for number in range(organizations)]


def _organization(number: int) -> list[str]:
    from credentials.models import Credential, OrganizationDataKey
    from gateway.lib import clock, secrets
    from oauth_ext.models import AgentKey, Client
    from oauth_ext.services.agent_keys import random_parts
    from orgs.models import Membership, Organization, ServerAccess, Team, TeamMembership, User

    org = Organization.objects.create(name=f"Organization {number}")
    team = Team.objects.create(organization=org, name="Ops")
    OrganizationDataKey.objects.create(organization=org, version=1, key_id="bench", wrapped_key=os.urandom(60))
    Credential.objects.bulk_create(
        Credential(organization=org, vendor=vendor, scope="organization", data_key_version=1, sealed=os.urandom(90))
        for vendor in VENDORS
    )
    client = Client.objects.create(
        client_id=f"mcpc_{number}", client_type=Client.CLIENT_PUBLIC, authorization_grant_type="", name="Desktop client"
    )
    bearers = []
    for index in range(PEOPLE):
        person = User.objects.create(email=f"person-{number}-{index}@example.com", display_name=f"Person {index}")
        member = Membership.objects.create(organization=org, user=person, role="member")
        TeamMembership.objects.create(team=team, membership=member)
        ServerAccess.objects.bulk_create(
            ServerAccess(organization=org, membership=member, vendor=vendor) for vendor in VENDORS
        )
        bearers.append(_token(person, client, org))
    parts = random_parts()
    bot = Client.objects.create(
        client_id=f"svc_{number}",
        client_type=Client.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Client.GRANT_CLIENT_CREDENTIALS,
        organization=org,
        name="build bot",
        expires_at=clock.now() + timedelta(days=1),
    )
    AgentKey.objects.create(client=bot, prefix=parts.prefix, secret_sha256=secrets.sha256(parts.secret))
    return [*bearers, parts.text()]


def _token(person: Any, client: Any, org: Any) -> str:
    from oauth2_provider.models import set_token_value

    from gateway.lib import clock
    from oauth_ext.jwt import mint
    from oauth_ext.models import AccessToken

    asked = SimpleNamespace(client=client, user=person, organization_id=org.id, scopes=["mcp:all"], resource=[])
    token = mint.access_token(asked)
    expires = clock.now() + timedelta(hours=1)
    row = AccessToken(user=person, application=client, organization=org, scope="mcp:all", expires=expires)
    set_token_value(row, token)
    row.save()
    return token


async def cpu_ms(work: Callable[[str], Awaitable[object]], bearers: Sequence[str]) -> float:
    began_s = time.process_time()
    for bearer in bearers:
        await work(bearer)
    return (time.process_time() - began_s) / len(bearers) * 1_000


async def loads(bearers: Bearers, *, is_threaded: bool = False) -> dict[str, float]:
    """CPU milliseconds for one caller."""
    from proxy.caller_cache import CallerCache

    store: Any = Epochs()
    cache = CallerCache(store)
    if is_threaded:
        cache._database._reader = None
    await cache.get(bearers[0][0], ADDRESS)

    async def get(bearer: str) -> object:
        return await cache.get(bearer, ADDRESS)

    async def warm(bearer: str) -> object:
        return await cache.revalidated(bearer, await cache.get(bearer, ADDRESS), ("0" * 32,) * 3)

    rest = bearers[1:]
    found = {
        "token, organization unknown": await cpu_ms(get, [each[0] for each in rest]),
        "token, organization known": await cpu_ms(get, [token for each in rest for token in each[1:-1]]),
        "agent key, organization known": await cpu_ms(get, [each[-1] for each in rest]),
        "known caller": await cpu_ms(warm, [bearer for each in rest for bearer in each]),
    }
    await cache.aclose()
    return found


async def ways_to_ask(url: str, bearers: Bearers) -> dict[str, float]:
    """CPU milliseconds of one prepared statement with its row, beside the library's own connection."""
    import psycopg

    from oauth_ext.bearer_rows import BY_AGENT_KEY
    from proxy.hot_path_database import HotPathDatabase

    prefixes = [each[-1].rpartition("_")[0] for each in bearers]
    database = HotPathDatabase(lambda: False)
    library = await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=0)
    sql = BY_AGENT_KEY.postgresql.decode().replace("$1", "%s")

    async def with_library(prefix: str) -> object:
        return await (await library.execute(sql, [prefix])).fetchone()  # type: ignore[arg-type]

    found = {}
    for name, ask in (
        ("libpq on the event loop", lambda prefix: database.read(BY_AGENT_KEY, prefix)),
        ("psycopg's asynchronous connection", with_library),
        ("a thread with Django's connection", lambda prefix: database.run_in_thread(lambda: BY_AGENT_KEY.ask(prefix))),
    ):
        await ask(prefixes[0])
        found[f"statement over {name}"] = await cpu_ms(ask, prefixes)
    await library.close()
    await database.aclose()
    return found


async def memory(bearers: Bearers) -> dict[str, float]:
    """Bytes for one organization, and for one caller of a known organization."""
    from proxy.caller_cache import CallerCache

    store: Any = Epochs()
    cache = CallerCache(store)
    await cache.get(bearers[0][0], ADDRESS)
    tracemalloc.start()
    sizes = [tracemalloc.get_traced_memory()[0]]
    for chosen in (slice(0, 1), slice(1, None)):
        for each in bearers[1:]:
            for bearer in each[chosen]:
                await cache.get(bearer, ADDRESS)
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    await cache.aclose()
    caller = (sizes[2] - sizes[1]) / (len(bearers) - 1) / PEOPLE
    return {"organization": (sizes[1] - sizes[0]) / (len(bearers) - 1) - caller, "caller": caller}


def finding_credentials(keys: int) -> float:
    """CPU microseconds to find a team's credential among named keys."""
    from credentials.credential_scope import CredentialScope
    from credentials.resolve import CredentialIndex, CredentialRef

    teams = [uuid.uuid4() for _ in range(keys)]
    refs = [
        CredentialRef(uuid.uuid4(), "acme", CredentialScope.NAMED_KEY, team, None, f"key {team}", 1, b"", 1)
        for team in teams
    ]
    index, asked = CredentialIndex(refs), (teams[-1],)
    rounds, began_s = 100_000, time.process_time()
    for _ in range(rounds):
        index.find(service_client_id=None, team_ids=asked)
    return (time.process_time() - began_s) / rounds * 1e6


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--organizations", type=int, default=400)
    chosen = options.parse_args()
    server = os.environ.get("BENCH_DATABASE_URL", "")
    if not server:
        sys.stderr.write("BENCH_DATABASE_URL must name a PostgreSQL server.\n")
        return 2
    with own_database(server) as url:
        configure(url)
        bearers = seed(chosen.organizations + 1)
        for name, is_threaded in (("on the event loop", False), ("in threads", True)):
            for kind, found in asyncio.run(loads(bearers, is_threaded=is_threaded)).items():
                print(f"{kind + ', rows read ' + name:<60}{found:8.3f} ms")
        for kind, found in asyncio.run(ways_to_ask(url, bearers)).items():
            print(f"{kind:<60}{found:8.3f} ms")
        for kind, found in asyncio.run(memory(bearers)).items():
            print(f"{kind + ' in memory':<60}{found:8.0f} bytes")
    for keys in NAMED_KEYS:
        print(f"{f'credential among {keys} named keys':<60}{finding_credentials(keys):8.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
