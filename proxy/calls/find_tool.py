"""Finds the tool of a vendor by the name that the caller used."""

from __future__ import annotations

from dataclasses import dataclass

from credentials.resolve import CredentialRef
from gateway.catalog.tool_config import ToolPolicy
from gateway.catalog.vendor import Vendor
from proxy.calls.decide import may_use_vendor
from proxy.calls.destination import destination
from proxy.outcomes import Denied, Failed, UnknownTool
from proxy.protocol.tool_names import ExposedTool
from proxy.request_context import RequestContext
from proxy.vendors.errors import VendorProblem
from proxy.vendors.pool import Destination
from proxy.vendors.tool_index import ToolIndex


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool at a vendor that the caller may use. The allowlist is checked later."""

    vendor: Vendor
    credential: CredentialRef
    destination: Destination
    tool: ExposedTool
    input_schema: object
    policy: ToolPolicy


NotFound = Denied | UnknownTool | Failed


async def find_by_exposed_name(context: RequestContext, name: str, *, deadline: float) -> FoundTool | NotFound:
    # Never another vendor with a shorter prefix: the arguments are not meant for it. Spec: D111, D164
    vendor = context.caller.catalog.owner_of(name)
    if vendor is None:
        return UnknownTool(name)
    return await find_at_vendor(context, vendor, name, cli=False, deadline=deadline)


async def find_at_vendor(
    context: RequestContext, vendor: Vendor, name: str, *, cli: bool, deadline: float
) -> FoundTool | NotFound:
    """An unknown name is looked up once more in a new list. Spec: D144"""
    # Deciding and opening the credential count as authentication, listing tools as session.
    with context.timing.auth:
        verdict = may_use_vendor(context.caller, vendor)
        if isinstance(verdict, Denied):
            return verdict
        target = destination(context.caller.organization, vendor, verdict.credential)
    if isinstance(target, Denied):
        return target
    directory = context.runtime.directory
    try:
        with context.timing.session:
            index = await directory.index(vendor, target, deadline=deadline)
            tool = _lookup(index, name, cli=cli)
            if tool is None:
                index = await directory.fresh_index(vendor, target, deadline=deadline)
                tool = _lookup(index, name, cli=cli)
    except VendorProblem as problem:
        return Failed(vendor.slug, problem.fault, problem.detail, problem.retry_after_s, verdict.credential)
    if tool is None:
        return UnknownTool(name, vendor.slug)
    input_schema = index.definitions[tool.vendor_name].get("inputSchema")
    return FoundTool(vendor, verdict.credential, target, tool, input_schema, index.policy(tool))


def _lookup(index: ToolIndex, name: str, *, cli: bool) -> ExposedTool | None:
    return index.tools.by_cli_name(name) if cli else index.tools.by_exposed(name)
