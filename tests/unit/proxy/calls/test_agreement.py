"""The tools that a caller is shown are those that it may call, on every route, for any lists and allowlists."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from audit.call_status import CallSource
from credentials.credential_scope import CredentialScope
from credentials.resolve import CredentialIndex, CredentialRef
from gateway.catalog.catalog import Catalog
from gateway.catalog.tool_config import ToolConfig
from gateway.catalog.vendor import Vendor
from gateway.coordination.rules import Rule
from gateway.coordination.store import Admission
from orgs.access_rules import refusing_limit
from orgs.principal import Principal, PrincipalKind
from orgs.roles import Role
from proxy.cache.list_bodies import ListBodies
from proxy.caller import Caller, OrganizationAccess, OwnRights
from proxy.calls.decide import may_call_tool
from proxy.calls.find_tool import FoundTool, find_or_fetch_tool
from proxy.calls.list_tools import list_tools
from proxy.outcomes import VendorFault
from proxy.protocol.tool_definitions import accept_definitions
from proxy.request_context import RequestContext
from proxy.timing import Timing
from proxy.vendors import errors
from proxy.vendors.destination import Destination, PoolKey
from proxy.vendors.tool_list import ReceivedList, ToolList, build_list
from proxy.vendors.tool_list_cache import ToolIndex
from proxy.views import cli
from tests.unit.proxy.protocol.schemas import ANY_SCHEMA, JSON

# One prefix begins another, so that two vendors can be meant by one name.
VENDORS = tuple(
    Vendor(slug=slug, name=slug.title(), url=f"https://{slug}.example/mcp", tool_prefix=prefix)
    for slug, prefix in (("acme", "acme"), ("acme-pro", "acme_pro"), ("globex", "globex"))
)
ORGANIZATION = uuid.UUID(int=1)

NAMES = st.sampled_from(
    [
        "x",
        "pro_x",
        "x",
        "pro_x",
        "acme_x",
        "acme_pro_x",
        "acme-x",
        "pro-x",
        "a.x",
        "a_x",
        "_x",
        "__x",
        "X",
        "globex_x",
        "x" * 70,
        "ü",
    ]
) | st.text("xpro_-.", min_size=1, max_size=6)
DEFINITIONS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "inputSchema": ANY_SCHEMA | JSON,
        "description": st.text(max_size=5) | JSON,
        "annotations": st.fixed_dictionaries({"readOnlyHint": st.booleans() | JSON}) | JSON,
    },
)
TOOL_LISTS = st.lists(DEFINITIONS | JSON, max_size=5)


@st.composite
def situations(draw: st.DrawFn) -> SimpleNamespace:
    """Tools of each vendor (None: it is down), an allowlist or none for each, and which of them the caller may use."""
    slugs = [vendor.slug for vendor in VENDORS]
    tools = {slug: draw(st.none() | TOOL_LISTS) for slug in slugs}
    names = sorted({each["name"] for listed in tools.values() for each in listed or () if _has_name(each)})
    allowlists, own_allowlists = {}, {}
    for slug in slugs:
        allowed = draw(st.none() | st.frozensets(st.sampled_from(names) | NAMES if names else NAMES, max_size=6))
        if allowed is not None:
            allowlists[slug, draw(st.sampled_from(Role)).value] = allowed
        own = draw(st.none() | st.frozensets(st.sampled_from(names) | NAMES if names else NAMES, max_size=6))
        if own is not None:
            own_allowlists[slug] = own
    return SimpleNamespace(
        tools=tools,
        allowlists=allowlists,
        role=draw(st.sampled_from(Role)),
        connected=draw(st.sets(st.sampled_from(slugs))),
        scopes=draw(st.just({"mcp:all"}) | st.sets(st.sampled_from([f"mcp:{slug}" for slug in slugs]), min_size=1)),
        asked=draw(st.lists(NAMES, max_size=4)),
        own_allowlists=own_allowlists,
        is_read_only=draw(st.booleans()),
    )


def _has_name(each: Any) -> bool:
    return isinstance(each, dict) and isinstance(each.get("name"), str)


def listed(vendor: Vendor, tools: Any) -> ToolList:
    received = ReceivedList.of(vendor, [Raw(json.dumps(each).encode()) for each in tools], 0)
    return build_list(vendor, accept_definitions(tools).definitions, ToolConfig(), received.digest)


class Directory:
    """Indexes as the real one builds them, of vendors that are asked nothing."""

    def __init__(self, tools: dict[str, Any]) -> None:
        self.indexes = {
            vendor.slug: ToolIndex(listed(vendor, tools[vendor.slug]), 0.0)
            for vendor in VENDORS
            if tools[vendor.slug] is not None
        }

    async def index(self, vendor: Vendor, destination: Destination, *, deadline: float) -> ToolIndex:
        if vendor.slug not in self.indexes:
            raise errors.unavailable()
        return self.indexes[vendor.slug]

    fresh_index = index


class Store:
    """There is room in every window, and nothing has changed."""

    async def admit(self, rule: Rule, subject: str, names: Any) -> Admission:
        return Admission(rule, True, 1, 0, None)


class CallerCache:
    """The caller is who it was."""

    async def confirmed(self, bearer: str, caller: Caller, current: object) -> Caller:
        return caller


def exchange_of(case: SimpleNamespace) -> RequestContext:
    """A caller in the situation."""
    credentials, destinations = {}, {}
    for number, vendor in enumerate(VENDORS):
        if vendor.slug in case.connected:
            scope = CredentialScope.ORGANIZATION
            ref = CredentialRef(uuid.UUID(int=number), vendor.slug, scope, None, None, "", 1, b"sealed", 1)
            key = PoolKey(ORGANIZATION, vendor.slug, ref.id, b"digest")
            credentials[vendor.slug] = CredentialIndex([ref])
            destinations[ref.id] = (vendor, Destination(key, lambda: ("", {})))
    principal = Principal(
        PrincipalKind.PERSON,
        "someone",
        "Someone",
        ORGANIZATION,
        case.role,
        (),
        None,
        frozenset(case.scopes),
        uuid.UUID(int=2),
        "client",
        "Client",
        own_allowlists=case.own_allowlists,
        is_read_only=case.is_read_only,
    )
    organization = OrganizationAccess(ORGANIZATION, "Org", True, credentials, (), case.allowlists, destinations)
    own = OwnRights(principal, None, frozenset(), 0.0, 0.0, 0.0)
    names = ("subject:someone", "org:1", "catalog")
    caller = Caller(own, principal, organization, Catalog(VENDORS), (0.0,) * 3, 0.0, 0.0, names, None)
    runtime: Any = SimpleNamespace(directory=Directory(case.tools), store=Store(), cache=CallerCache())
    runtime.list_bodies = ListBodies(max_bytes=1_000_000)
    client = SimpleNamespace(client_disconnected=False)
    return RequestContext(runtime, CallSource.MCP, "", caller, Timing(), "request", "", 0, client)


async def callable_at(
    context: RequestContext, vendor: Vendor | None, name: str, *, by_command: bool
) -> FoundTool | None:
    """The tool that a call by this name would run, if it is allowed to."""
    found = await find_or_fetch_tool(context, name, vendor, cli=by_command)
    if not isinstance(found, FoundTool):
        return None
    caller = context.caller
    denied = may_call_tool(
        *(caller.principal, caller.organization, found.vendor, found.tool.vendor_name),
        is_read_only=found.policy.read_only,
    )
    return None if denied else found


def names_of(body: bytes) -> list[str]:
    return [each["name"] for each in json.loads(b"[%b]" % body)]


def spellings(case: SimpleNamespace, context: RequestContext) -> set[str]:
    """Every name that somebody might try."""
    tried = set(case.asked)
    for vendor in VENDORS:
        index = context.runtime.directory.indexes.get(vendor.slug)  # type: ignore[attr-defined]
        for tool in index.content.tools.tools if index else ():
            tried |= {tool.vendor_name, tool.exposed_name, tool.command, f"{vendor.tool_prefix}__{tool.vendor_name}"}
    return tried


async def check_unified(case: SimpleNamespace, context: RequestContext) -> None:
    listed = await list_tools(context)
    names = names_of(bytes(listed.body))
    assert names == sorted(set(names))
    definitions = {each["name"]: each for each in json.loads(b"[%b]" % bytes(listed.body))}
    for name in names:
        found = await callable_at(context, None, name, by_command=False)
        assert found is not None, f"{name} is shown and may not be called"
        index = context.runtime.directory.indexes[found.vendor.slug]  # type: ignore[attr-defined]
        assert json.loads(index.content.encoded[name]) == definitions[name], "what is shown is what is called"
    for name in spellings(case, context):
        found = await callable_at(context, None, name, by_command=False)
        if found is not None:
            assert name in definitions or name != found.tool.exposed_name, f"{name} may be called and is not shown"
            # acme__pro_x still says which vendor is meant where acme_pro_x is another one's.
            assert found.tool.exposed_name in names_of(bytes((await list_tools(context, [found.vendor])).body))
    assert listed.unavailable == named_as_down(case, VENDORS)


def may_use(case: SimpleNamespace, vendor: Vendor) -> bool:
    """Whether the caller's organization is connected to it, and the token is for it."""
    return vendor.slug in case.connected and bool({"mcp:all", f"mcp:{vendor.slug}"} & set(case.scopes))


def named_as_down(case: SimpleNamespace, vendors: Sequence[Vendor]) -> dict[str, str]:
    """Every vendor that is down and that the caller may use, and no other one: who may not is told nothing of it."""
    down = [vendor.slug for vendor in vendors if may_use(case, vendor) and case.tools[vendor.slug] is None]
    return dict.fromkeys(down, VendorFault.UNAVAILABLE.value)


async def check_vendor(case: SimpleNamespace, context: RequestContext, vendor: Vendor) -> None:
    usable = may_use(case, vendor)
    index = context.runtime.directory.indexes.get(vendor.slug)  # type: ignore[attr-defined]
    found = await list_tools(context, [vendor])
    assert found.unavailable == named_as_down(case, [vendor])
    listed = set(names_of(bytes(found.body)))
    if not usable or index is None:
        assert listed == set()
        for name in spellings(case, context):
            assert await callable_at(context, vendor, name, by_command=True) is None
        return
    marked = {
        name
        for name, policy in index.content.policies.items()
        if refusing_limit(context.caller.principal, vendor.slug, name, case.allowlists, is_read_only=policy.read_only)
        is None
    }
    assert listed == {tool.exposed_name for tool in index.content.tools.tools if tool.vendor_name in marked}
    route = cli._route("GET", vendor.slug)
    commands = [each["command"] for each in (await cli._schema(context, route, vendor))["commands"]]
    assert len(commands) == len(set(commands)) == len(marked)
    reached = set()
    for command in commands:
        reachable = await callable_at(context, vendor, command, by_command=True)
        assert reachable is not None, f"{command} is shown and may not be called"
        reached.add(reachable.tool.vendor_name)
    assert reached == marked
    for name in spellings(case, context):
        for by_command in (True, False):
            reachable = await callable_at(context, vendor, name, by_command=by_command)
            assert reachable is None or reachable.tool.vendor_name in marked


SHADOWED = SimpleNamespace(
    tools={"acme": [{"name": "pro_x"}], "acme-pro": [{"name": "x"}], "globex": []},
    allowlists={("acme-pro", "member"): frozenset()},
    role=Role.MEMBER,
    connected={"acme", "acme-pro"},
    scopes={"mcp:all"},
    asked=[],
    own_allowlists={},
    is_read_only=False,
)
DOWN = SimpleNamespace(
    tools={"acme": None, "acme-pro": [{"name": "x"}], "globex": None},
    allowlists={},
    role=Role.MEMBER,
    connected={"acme", "acme-pro"},
    scopes={"mcp:all"},
    asked=[],
    own_allowlists={},
    is_read_only=False,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(case=SHADOWED)  # two vendors with one name for a tool, and the one it belongs to is refused
@example(case=DOWN)  # one of them is the caller's
@given(case=situations())
def test_what_is_shown_may_be_called_and_nothing_else(case: SimpleNamespace) -> None:
    async def check() -> None:
        context = exchange_of(case)
        await check_unified(case, context)
        for vendor in VENDORS:
            await check_vendor(case, context, vendor)

    asyncio.run(check())


BODIES = ListBodies(max_bytes=50_000)  # of all examples, of which some displace others


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(case=SHADOWED)
@example(case=DOWN)
@given(case=situations())
def test_a_kept_answer_is_the_one_that_would_be_built(case: SimpleNamespace) -> None:
    async def check() -> None:
        for vendors in (None, *([vendor] for vendor in VENDORS)):
            contexts = [exchange_of(case), exchange_of(case), exchange_of(case)]
            for context in contexts[1:]:
                context.runtime.list_bodies = BODIES
            built, first, second = [await list_tools(context, vendors) for context in contexts]
            assert bytes(built.body) == bytes(first.body)
            assert built.unavailable == first.unavailable == second.unavailable
            assert second.body is first.body

    asyncio.run(check())
