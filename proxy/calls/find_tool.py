"""Finds the tool of a vendor by the name that the caller used, in a list that may have to be fetched."""

from __future__ import annotations

import asyncio

import msgspec

from credentials.resolve import CredentialRef
from gateway.catalog.catalog import Catalog
from gateway.catalog.tool_config import ToolPolicy
from gateway.catalog.vendor import Vendor
from proxy.calls.open_destination import after_rejection, refused_scopes, renewed, usable_vendor
from proxy.outcomes import Denial, Denied, Failed, UnknownTool
from proxy.protocol.tool_names import ExposedTool
from proxy.request_context import RequestContext
from proxy.vendors.destination import Destination
from proxy.vendors.errors import VendorProblem
from proxy.vendors.tool_list import ToolList
from proxy.vendors.tool_list_cache import ToolIndex

FIND_DEADLINE_S = 15.0  # to open a session and list the vendor's tools


class FoundTool(msgspec.Struct, frozen=True):
    """A tool at a vendor that the caller may use. The allowlist is checked later."""

    vendor: Vendor
    credential: CredentialRef
    destination: Destination
    tool: ExposedTool
    policy: ToolPolicy
    listed: ToolList  # has the tool


NotFound = Denied | UnknownTool | Failed


async def find_or_fetch_tool(
    context: RequestContext, name: str, asked_vendor: Vendor | None, *, cli: bool
) -> FoundTool | NotFound:
    """The tool in the vendor's list. A list that is not in memory is fetched from the vendor, and so is a new list for
    an unknown name. Spec: D144"""
    vendor = _vendor_of(context.caller.catalog, name, asked_vendor)
    if not isinstance(vendor, Vendor):
        return vendor
    deadline = asyncio.get_running_loop().time() + FIND_DEADLINE_S
    # Deciding and opening the credential count as authentication, listing tools as session.
    with context.timing.auth:
        usable = usable_vendor(context.caller, vendor)
    if isinstance(usable, Denied):
        return usable
    if usable[0].refresh_at_s is not None:
        usable = await renewed(context, vendor, usable)
        if isinstance(usable, Denied):
            return usable
    credential, target = usable
    listed = await _listed(context, vendor, target, name, deadline, cli=cli)
    if isinstance(listed, VendorProblem) and credential.is_connection and listed.is_rejection:
        again = await after_rejection(context, vendor, credential)
        if isinstance(again, Denied):
            return again
        if again is not None:
            credential, target = again
            listed = await _listed(context, vendor, target, name, deadline, cli=cli)
    if isinstance(listed, VendorProblem):
        if credential.is_connection and listed.scopes_wanted:
            return await refused_scopes(context, vendor, credential, target, listed.scopes_wanted)
        return Failed(vendor.slug, listed.fault, listed.detail, listed.retry_after_s, credential)
    index, tool = listed
    if tool is None:
        return UnknownTool(name, vendor.slug)
    return FoundTool(vendor, credential, target, tool, index.content.policy(tool), index.content)


async def _listed(
    context: RequestContext, vendor: Vendor, target: Destination, name: str, deadline: float, *, cli: bool
) -> tuple[ToolIndex, ExposedTool | None] | VendorProblem:
    directory = context.runtime.directory
    try:
        with context.timing.session:
            index = await directory.index(vendor, target, deadline=deadline)
            tool = _lookup(index.content, name, cli=cli)
            if tool is None:
                index = await directory.fresh_index(vendor, target, deadline=deadline)
                tool = _lookup(index.content, name, cli=cli)
    except VendorProblem as problem:
        return problem
    return index, tool


def _vendor_of(catalog: Catalog, name: str, asked: Vendor | None) -> Vendor | Denied | UnknownTool:
    """The vendor as the catalog has it after admission; at the unified endpoint the owner of the name's prefix."""
    if asked is None:
        # Never another vendor with a shorter prefix: the arguments are not meant for it. Spec: D111, D164
        return catalog.owner_of(name) or UnknownTool(name)
    return catalog.get(asked.slug) or Denied(
        Denial.UNKNOWN_VENDOR, "There are no credentials for this vendor.", asked.slug
    )


def _lookup(listed: ToolList, name: str, *, cli: bool) -> ExposedTool | None:
    return listed.tools.by_cli_name(name) if cli else listed.tools.by_exposed(name)
