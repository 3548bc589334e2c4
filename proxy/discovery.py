"""Asking a vendor, now, which tools it has: one conversation of its own, outside the pool of the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from credentials.resolve import CredentialRef
from credentials.sealing import WrappedKey, open_fields
from gateway.catalog.templates import vendor_headers, vendor_url
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import DomainError
from proxy.outcomes import VendorFault
from proxy.vendors.errors import VendorProblem
from proxy.vendors.pool import Destination, PoolKey, SessionPool
from proxy.vendors.tool_index import ToolDirectory
from proxy.vendors.transport import Limits, VendorTransport

_LIMITS = Limits(
    connect_s=settings.VENDOR_CONNECT_TIMEOUT_S,
    chunk_s=settings.VENDOR_CHUNK_TIMEOUT_S,
    body_bytes=settings.VENDOR_REPLY_BYTES,
)


class NotConnected(DomainError):
    """No credential of the vendor applies to the person. Spec: D78"""

    code, message, status = "no_credentials", "This vendor is not connected.", 403


class VendorFailed(DomainError):
    """The vendor did not list its tools. Spec: D78"""

    status = 502

    def __init__(self, fault: VendorFault, detail: str) -> None:
        # For whoever asks for the list, a vendor that is late is as good as away.
        self.code = (VendorFault.UNAVAILABLE if fault is VendorFault.TIMEOUT else fault).value
        super().__init__(detail)


def opened(credential: CredentialRef, vendor: Vendor, wrapped: tuple[WrappedKey, ...], org_id: Any) -> Destination:
    """Where the vendor is and what opens it.

    Raises: UnusableCredential; FieldError.
    """
    fields = open_fields(credential, organization_id=org_id, wrapped=wrapped)
    headers, url = vendor_headers(vendor, fields), vendor_url(vendor, fields)
    return Destination(PoolKey.of(org_id, vendor.slug, credential.id, url, headers), lambda: (url, headers))


async def discover(vendor: Vendor, destination: Destination) -> Mapping[str, dict[str, Any]]:
    """The vendor's tool definitions by its own names, in its order, as it sends them at this moment.

    Raises: VendorFailed.   Spec: §4.9 · D78
    """
    transport = VendorTransport(allow_private=settings.ALLOW_PRIVATE_ENDPOINTS, limits=_LIMITS)
    pool = SessionPool(transport, idle_s=settings.VENDOR_SESSION_IDLE_S)
    directory = ToolDirectory(
        pool, settings.VENDOR_TOOL_CONFIG, ttl_s=settings.TOOL_LIST_TTL_S, max_pages=settings.TOOL_LIST_MAX_PAGES
    )
    deadline = asyncio.get_running_loop().time() + settings.DISCOVER_DEADLINE_S
    try:
        index = await directory.fresh_index(vendor, destination, deadline=deadline)
    except VendorProblem as problem:
        raise VendorFailed(problem.fault, problem.detail) from problem
    except TimeoutError as fault:
        raise VendorFailed(VendorFault.TIMEOUT, "The vendor did not list its tools in time.") from fault
    finally:
        await pool.aclose()
        await transport.aclose()
    return index.definitions
