"""The tools of the demonstration vendor "Acme RMM": read-only, writing, destructive, slow and failing ones."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from demo.vendor_inventory import (
    Device,
    DeviceStatus,
    LimitReachedError,
    NotFoundError,
    Priority,
    Record,
    Requester,
    SearchHit,
    SearchQuery,
    Site,
    Ticket,
)
from demo.vendor_tenants import Tenant, TenantStore

FINGERPRINT_KEY = "demo.fingerprint"
# Progress notifications of one report.
REPORT_STEPS = 6

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
SETS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
DESTROYS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)

DeviceId = Annotated[str, Field(pattern=r"^dev-\d{3}$", description="Such as dev-001")]
TicketId = Annotated[str, Field(pattern=r"^T-\d{4,9}$", description="Such as T-1001")]
Tag = Annotated[str, Field(min_length=1, max_length=40)]
Limit = Annotated[int, Field(ge=1, le=100, description="How many to return at most")]


class WhoAmI(Record):
    """The owner of the data that this API key reads."""

    vendor: Literal["Acme RMM"] = "Acme RMM"
    key_fingerprint: Annotated[str, Field(description="Stands for the API key and does not lead back to it")]
    devices: int
    tickets: int


class DeviceList(Record):
    """Some of the devices that match, and how many match in all."""

    devices: list[Device]
    total: int


class SearchResult(Record):
    """Some of the matches, and how many there are in all."""

    hits: list[SearchHit]
    total: int


class Deletion(Record):
    """The record that was deleted."""

    deleted: str
    subject: str


class Report(Record):
    """Counts over the tenant's devices."""

    kind: Literal["inventory", "availability"]
    created_at: datetime
    counts: dict[str, int]


class AcmeTools:
    """The tools as methods; each finds its tenant by the request it is called in, never by an argument.

    `clock` returns an aware UTC time; `pause` waits a number of seconds.
    """

    def __init__(
        self, tenants: TenantStore, clock: Callable[[], datetime], pause: Callable[[float], Awaitable[None]]
    ) -> None:
        self._tenants = tenants
        self._clock = clock
        # Waits a number of seconds.
        self._pause = pause

    def _tenant(self, context: Context) -> Tenant:
        request = context.request_context.request
        if request is None:
            raise ToolError("no API key came with this call")
        return self._tenants.tenant(request.scope[FINGERPRINT_KEY])

    async def whoami(self, context: Context) -> WhoAmI:
        """Says which tenant the API key belongs to. Returns a fingerprint of the key, never the key."""
        tenant = self._tenant(context)
        inventory = tenant.inventory
        return WhoAmI(
            key_fingerprint=tenant.fingerprint, devices=len(inventory.devices), tickets=len(inventory.tickets)
        )

    async def list_devices(
        self,
        context: Context,
        site: Annotated[Site | None, Field(description="Only devices of this site")] = None,
        status: Annotated[DeviceStatus | None, Field(description="Only devices in this state")] = None,
        limit: Limit = 25,
    ) -> DeviceList:
        """Lists managed devices by id, perhaps of one site or in one state."""
        devices = self._tenant(context).inventory.select_devices(site=site, status=status)
        return DeviceList(devices=devices[:limit], total=len(devices))

    async def get_device(self, context: Context, device_id: DeviceId) -> Device:
        """Returns one device."""
        with _refusals():
            return self._tenant(context).inventory.find_device(device_id)

    async def search(self, context: Context, query: SearchQuery, limit: Limit = 25) -> SearchResult:
        """Finds devices and tickets by a part of their text."""
        hits = self._tenant(context).inventory.search(query)
        return SearchResult(hits=hits[:limit], total=len(hits))

    async def create_ticket(
        self,
        context: Context,
        subject: Annotated[str, Field(min_length=1, max_length=200)],
        requester: Annotated[Requester, Field(description="Who asks for help")],
        description: Annotated[str, Field(max_length=4000)] = "",
        priority: Annotated[Priority, Field(description="How soon help is needed")] = "normal",
        tags: Annotated[list[Tag], Field(max_length=10, description="Words to find the ticket by")] = [],  # noqa: B006  # copied for each call
        device_id: Annotated[DeviceId | None, Field(description="The device the ticket is about")] = None,
    ) -> Ticket:
        """Opens a ticket under the next free number."""
        tenant = self._tenant(context)
        with _refusals():
            ticket = tenant.inventory.create_ticket(
                subject=subject,
                description=description,
                priority=priority,
                tags=tags,
                requester=requester,
                device_id=device_id,
                created_at=self._clock(),
            )
        await self._tenants.save(tenant)
        return ticket

    async def update_device(
        self,
        context: Context,
        device_id: DeviceId,
        status: Annotated[DeviceStatus | None, Field(description="The new state")] = None,
        note: Annotated[str | None, Field(max_length=500, description="The new note; empty removes it")] = None,
    ) -> Device:
        """Sets the state or the note of a device. The same call again changes nothing more."""
        tenant = self._tenant(context)
        if status is None and note is None:
            raise ToolError("give a status or a note")
        with _refusals():
            device = tenant.inventory.update_device(device_id, status=status, note=note)
        await self._tenants.save(tenant)
        return device

    async def delete_ticket(self, context: Context, ticket_id: TicketId) -> Deletion:
        """Deletes a ticket for good."""
        tenant = self._tenant(context)
        with _refusals():
            ticket = tenant.inventory.delete_ticket(ticket_id)
        await self._tenants.save(tenant)
        return Deletion(deleted=ticket.id, subject=ticket.subject)

    async def run_report(
        self,
        context: Context,
        kind: Annotated[Literal["inventory", "availability"], Field(description="Count by site or by state")],
        seconds: Annotated[float, Field(ge=0, le=10, description="How long the report takes")] = 3,
    ) -> Report:
        """Counts devices, slowly, and reports progress meanwhile."""
        inventory = self._tenant(context).inventory
        for step in range(REPORT_STEPS):
            await context.report_progress(step, REPORT_STEPS, f"step {step + 1} of {REPORT_STEPS}")
            await self._pause(seconds / REPORT_STEPS)
        await context.report_progress(REPORT_STEPS, REPORT_STEPS, "done")
        counts: dict[str, int] = {}
        for device in inventory.devices.values():
            group = device.site if kind == "inventory" else device.status
            counts[group] = counts.get(group, 0) + 1
        return Report(kind=kind, created_at=self._clock(), counts=counts)

    async def fail(
        self, context: Context, reason: Annotated[str, Field(min_length=1, max_length=200)] = "Acme is on fire"
    ) -> CallToolResult:
        """Always fails, with the given reason, to show what a failing tool looks like."""
        self._tenant(context)
        return CallToolResult(content=[TextContent(type="text", text=reason)], is_error=True)


@contextmanager
def _refusals() -> Iterator[None]:
    # The caller sees errors that it can fix. Other exceptions stay internal errors without their text.
    try:
        yield
    except (NotFoundError, LimitReachedError) as error:
        raise ToolError(str(error)) from error


def register_tools(server: MCPServer, tools: AcmeTools) -> None:
    """`server` offers every tool under the prefix acme_, with a title and annotations."""
    for method, title, annotations in (
        (tools.whoami, "Who am I", READS),
        (tools.list_devices, "List devices", READS),
        (tools.get_device, "Get a device", READS),
        (tools.search, "Search devices and tickets", READS),
        (tools.create_ticket, "Create a ticket", ADDS),
        (tools.update_device, "Update a device", SETS),
        (tools.delete_ticket, "Delete a ticket", DESTROYS),
        (tools.run_report, "Run a report", READS),
        (tools.fail, "Fail", READS),
    ):
        server.add_tool(method, name=f"acme_{method.__name__}", title=title, annotations=annotations)
