"""Step-by-step diagnosis of one vendor for operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from django.conf import settings

from audit.plain_text import plain_text
from gateway.catalog.vendor import Vendor
from proxy.protocol import replies, tool_definitions, versions
from proxy.protocol.json_schema import COMBINATORS, DATA, as_dict
from proxy.protocol.modern import eras, vendor_requests
from proxy.protocol.modern.param_headers import ANNOTATION, annotated
from proxy.protocol.tool_names import ExposedTools
from proxy.vendors.conversation import Conversation, Reply
from proxy.vendors.era_verdicts import Verdict
from proxy.vendors.handshake import INITIALIZED, base_headers
from proxy.vendors.transport import VendorTransport, configured_transport

# Problems of each kind that are listed; the rest is counted.
PROBLEMS_SHOWN = 20
# Characters of one finding. Control characters are removed, because vendor text must not drive a terminal.
_TEXT_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the report. `is_trouble`: callers will notice."""

    what: str
    found: str
    is_trouble: bool = False


@dataclass(frozen=True, slots=True)
class OpenedCredential:
    """The vendor's address for one organization, and headers with its credential. Never printed.

    `verdict`: the revision that calls of this credential use.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    verdict: Verdict | None = None


async def diagnose(vendor: Vendor, opened: OpenedCredential | None) -> list[Finding]:
    """Findings in the order of the checks. Without `opened` only the checks without credentials run."""
    # A customer-supplied address never gets a request without credentials.
    transport = configured_transport()
    try:
        return [plain(finding) for finding in await _diagnose(transport, vendor, opened)]
    finally:
        await transport.aclose()


async def _diagnose(transport: VendorTransport, vendor: Vendor, opened: OpenedCredential | None) -> list[Finding]:
    findings: list[Finding] = []
    if vendor.customer_supplied_url:
        findings.append(Finding("without credentials", "not tried: the address is the customer's"))
        needs_none = False
    else:
        bare = Conversation(transport, vendor.url, base_headers(), vendor.timeout_seconds)
        reply = await bare.initialize()
        needs_none = isinstance(reply.message, replies.VendorResult)
        if reply.status in (400, 404) and not needs_none:
            asked = await bare.discover()
            needs_none, reply = bare.is_modern, asked if bare.is_modern else reply
        findings.append(_without_credentials(reply))
        if reply.session_id:
            await bare.notify("DELETE", None)
    if opened is None and needs_none:
        opened = OpenedCredential(vendor.url, {})
    if opened is None:
        return [*findings, Finding("with credentials", "not tried: name an organization with --org")]
    headers = {**base_headers(), **opened.headers}
    conversation = Conversation(transport, opened.url, headers, vendor.timeout_seconds)
    if opened.verdict is not None:
        text = f"MCP {opened.verdict.version}, as it said at {opened.verdict.at:%Y-%m-%d %H:%M} UTC"
        findings.append(Finding("revision in use", text))
    return [*findings, *await _with_credentials(conversation, vendor)]


def _without_credentials(reply: Reply) -> Finding:
    if isinstance(reply.message, replies.VendorResult):
        return Finding("without credentials", f"HTTP 200, {reply.latency_ms} ms: it answers anyone")
    shape = f"HTTP {reply.status}" if reply.status else reply.summary
    if reply.status == 401:
        shape += f", WWW-Authenticate: {reply.challenge}" if reply.challenge else ", no WWW-Authenticate"
    return Finding("without credentials", f"{shape}, {reply.latency_ms} ms", not 200 <= reply.status < 500)


async def _with_credentials(conversation: Conversation, vendor: Vendor) -> list[Finding]:
    asked = await conversation.discover()
    revision = Finding("server/discover", f"{_what_it_says(conversation, asked)}, {asked.latency_ms} ms")
    if not vendor.newest_protocol:
        conversation.is_modern = False
        revision = Finding("server/discover", f"{revision.found}; the catalog says newest_protocol = false")
    if conversation.is_modern:
        return [revision, Finding("reply kind", asked.kind), *await _tools(conversation, vendor)]
    reply = await conversation.initialize()
    if not isinstance(reply.message, replies.VendorResult):
        return [revision, Finding("initialize", f"{reply.summary}, {reply.latency_ms} ms", True)]
    raw = reply.message.raw_result
    version = replies.protocol_version(raw)
    findings = [
        revision,
        Finding("initialize", f"HTTP 200, {reply.latency_ms} ms"),
        Finding("protocol version", version or "names none", version not in versions.NEWEST_FIRST),
        Finding("server version", replies.server_version(raw) or "names none"),
        Finding("reply kind", reply.kind),
        Finding("session id", "yes, it keeps state" if reply.session_id else "no, it is stateless"),
    ]
    initialized = await conversation.notify("POST", INITIALIZED)
    findings.append(Finding("initialized", initialized, initialized not in {"HTTP 200", "HTTP 202", "HTTP 204"}))
    findings += await _tools(conversation, vendor)
    if reply.session_id:
        findings.append(Finding("end of session", await conversation.notify("DELETE", None)))
    return findings


def _what_it_says(conversation: Conversation, asked: Reply) -> str:
    """The revision that the vendor speaks, by its answer to `server/discover`."""
    if conversation.is_modern:
        return f"it speaks MCP {vendor_requests.VERSION}, without sessions"
    if not isinstance(asked.message, replies.VendorResult):
        return f"an earlier revision: {asked.summary}"
    named = ", ".join(eras.supported_versions(asked.message.raw_result)) or "no version"
    return f"an earlier revision: it names {named}"


async def _tools(conversation: Conversation, vendor: Vendor) -> list[Finding]:
    listed: list[object] = []
    cursor: str | None = None
    kinds: list[str] = []
    spent_ms = 0
    for _ in range(settings.TOOL_LIST_MAX_PAGES):
        reply = await conversation.request("tools/list", {} if cursor is None else {"cursor": cursor})
        spent_ms += reply.latency_ms
        if not isinstance(reply.message, replies.VendorResult):
            return [Finding("tools/list", f"page {len(kinds) + 1}: {reply.summary}", True)]
        kinds.append(reply.kind)
        try:
            page = replies.tools_page(reply.message.raw_result)
        except replies.BadVendorReply as fault:
            return [Finding("tools/list", f"page {len(kinds)}: {fault}", True)]
        listed += page.tools
        if page.next_cursor is None or page.next_cursor == cursor:
            break
        cursor = page.next_cursor
    is_endless = cursor is not None and page.next_cursor is not None
    pages = f"{len(kinds)} pages" if len(kinds) > 1 else "one page"
    return [
        Finding("tools/list", f"{_counted(len(listed))}, {spent_ms} ms, {' and '.join(sorted(set(kinds)))}"),
        Finding("pagination", "it never ends" if is_endless else pages, is_endless),
        *_definitions(vendor, listed),
    ]


def _definitions(vendor: Vendor, listed: list[object]) -> list[Finding]:
    accepted = tool_definitions.accept_definitions(listed)
    by_name = {definition["name"]: definition for definition in accepted.definitions}
    tools = ExposedTools(vendor.tool_prefix, by_name).tools
    policies = [settings.VENDOR_TOOL_CONFIG.policy(vendor, name, each) for name, each in by_name.items()]
    renamed = [
        f"{tool.vendor_name} is called {tool.exposed_name}"
        for tool in tools
        if tool.exposed_name not in (tool.vendor_name, f"{vendor.tool_prefix}_{tool.vendor_name}")
    ]
    read_only = sum(policy.read_only for policy in policies)
    tasks = [f"{each['name']} runs only as a task" for each in listed if _is_task(each)]
    return [
        Finding("tools offered", f"{len(tools)}, {read_only} of them read-only"),
        *(_some("left out", tasks, is_trouble=False) if tasks else ()),
        *_some("tool name", renamed, is_trouble=False),
        *_some("definition", accepted.problems, is_trouble=True),
        *_some("reference", _remote_references(accepted.definitions), is_trouble=True),
        *_some("header", _wrong_headers(accepted.definitions), is_trouble=True),
        *_some("mended", [text for each in accepted.definitions if (text := _repairs(each))], is_trouble=False),
    ]


def _repairs(definition: Mapping[str, Any]) -> str:
    text, schema = definition.get("description"), definition.get("inputSchema")
    found = [] if isinstance(text, str) and text.strip() else ["no description"]
    if not isinstance(schema, dict):
        found.append("no inputSchema")
    else:
        if schema.get("type") != "object":
            named = f"is {tool_definitions.quoted(str(schema['type']))}" if "type" in schema else "is missing"
            found.append(f"the type of its inputSchema {named}, not 'object'")
        found += [f"{keyword} at the root of its inputSchema" for keyword in COMBINATORS if keyword in schema]
    return f"{tool_definitions.quoted(definition['name'])}: {', '.join(found)}" if found else ""


def _wrong_headers(definitions: list[tool_definitions.Definition]) -> list[str]:
    """Tools that clients of the modern revision leave out."""
    return [
        f"{tool_definitions.quoted(each['name'])} has a wrong {ANNOTATION} in its inputSchema"
        for each in definitions
        if annotated(each.get("inputSchema")) is None
    ]


def _remote_references(definitions: list[tool_definitions.Definition]) -> list[str]:
    """The first external `$ref` of each schema: clients do not fetch it."""
    found = []
    for each in definitions:
        for member in ("inputSchema", "outputSchema"):
            remote = next(_remote_in(as_dict(each.get(member))), None)
            if remote is not None:
                name, to = tool_definitions.quoted(each["name"]), tool_definitions.quoted(remote)
                found.append(f"{name} has a $ref out of its {member}, to {to}")
    return found


def _remote_in(schema: Mapping[str, Any]) -> Iterator[str]:
    """Accepted definitions are no deeper than their bound, so this ends early enough."""
    parts: list[object] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            reference = part.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                yield reference
            parts += [value for keyword, value in part.items() if keyword not in DATA]
        elif isinstance(part, list):
            parts += part


def _counted(tools: int) -> str:
    return "1 tool" if tools == 1 else f"{tools} tools"


def _is_task(listed: object) -> TypeGuard[dict[str, Any]]:
    return (
        isinstance(listed, dict) and isinstance(listed.get("name"), str) and tool_definitions.runs_only_as_task(listed)
    )


def _some(what: str, texts: list[str], *, is_trouble: bool) -> list[Finding]:
    found = [Finding(what, text, is_trouble) for text in texts[:PROBLEMS_SHOWN]]
    if len(texts) > PROBLEMS_SHOWN:
        found.append(Finding(what, f"and {len(texts) - PROBLEMS_SHOWN} more", is_trouble))
    return found or [Finding(what, "no problem")]


def plain(finding: Finding) -> Finding:
    """The finding as a terminal may show it."""
    return Finding(finding.what, plain_text(finding.found, max_characters=_TEXT_CHARACTERS), finding.is_trouble)
