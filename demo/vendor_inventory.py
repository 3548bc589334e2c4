"""Pure: devices and tickets of the demonstration vendor "Acme RMM" for one API key."""

import hashlib
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# Per tenant.
MAX_TICKETS = 500
DEVICE_COUNT = 24

Site = Literal["austin", "berlin", "osaka"]
DeviceStatus = Literal["online", "offline", "maintenance"]
Priority = Literal["low", "normal", "high", "urgent"]

_SITES: tuple[Site, ...] = ("austin", "berlin", "osaka")
_STATUSES: tuple[DeviceStatus, ...] = ("online", "online", "online", "offline", "maintenance")
_SYSTEMS = (
    ("Windows 11", "laptop"),
    ("Windows Server 2025", "server"),
    ("Ubuntu 24.04", "server"),
    ("macOS 26", "mac"),
)


class Record(BaseModel):
    """Every shape on the wire: unknown members are refused, so that a misspelt argument is not ignored in silence."""

    model_config = ConfigDict(extra="forbid")


class Device(Record):
    """One managed machine."""

    id: str
    hostname: str
    site: Site
    status: DeviceStatus
    operating_system: str
    last_seen_at: datetime
    note: str = ""


class Requester(Record):
    """The person who asks for help."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$", max_length=254)]


class Ticket(Record):
    """One request for help, perhaps about a device."""

    id: str
    subject: str
    description: str = ""
    priority: Priority
    tags: list[str]
    requester: Requester
    device_id: str | None = None
    created_at: datetime


class SearchFilter(Record):
    """Narrows a search to devices of one site or status."""

    site: Site | None = None
    status: DeviceStatus | None = None


class SearchQuery(Record):
    """A text to look for, and the kinds to look among."""

    text: Annotated[str, Field(min_length=1, max_length=200, description="Part of a name, subject, tag or note")]
    kinds: Annotated[list[Literal["device", "ticket"]], Field(min_length=1, max_length=2)] = ["device", "ticket"]
    filter: SearchFilter = SearchFilter()


class SearchHit(Record):
    """One match: its kind, its id, and a line that names it."""

    kind: Literal["device", "ticket"]
    id: str
    summary: str


class NotFoundError(Exception):
    """No such device or ticket of this tenant; the message names the id."""


class LimitReachedError(Exception):
    pass


class Inventory(Record):
    """Everything one tenant has. A tenant never sees another's: each API key has an inventory of its own."""

    devices: dict[str, Device]
    tickets: dict[str, Ticket] = {}
    last_ticket: int = 1000

    def find_device(self, device_id: str) -> Device:
        device = self.devices.get(device_id)
        if device is None:
            # Another tenant's device does not exist here either.
            raise NotFoundError(f"no device {device_id!r}")
        return device

    def select_devices(self, *, site: Site | None, status: DeviceStatus | None) -> list[Device]:
        return [
            device
            for device in self.devices.values()
            if (site is None or device.site == site) and (status is None or device.status == status)
        ]

    def update_device(self, device_id: str, *, status: DeviceStatus | None, note: str | None) -> Device:
        """Set the given members; idempotent. Raises: NotFoundError."""
        changes = {name: value for name, value in (("status", status), ("note", note)) if value is not None}
        device = self.find_device(device_id).model_copy(update=changes)
        self.devices[device_id] = device
        return device

    def create_ticket(
        self,
        *,
        subject: str,
        description: str,
        priority: Priority,
        tags: list[str],
        requester: Requester,
        device_id: str | None,
        created_at: datetime,
    ) -> Ticket:
        """Raises: NotFoundError for an unknown device; LimitReachedError."""
        if device_id is not None:
            self.find_device(device_id)
        if len(self.tickets) >= MAX_TICKETS:
            raise LimitReachedError(f"this tenant holds {MAX_TICKETS} tickets; delete some first")
        self.last_ticket += 1
        ticket = Ticket(
            id=f"T-{self.last_ticket}",
            subject=subject,
            description=description,
            priority=priority,
            tags=tags,
            requester=requester,
            device_id=device_id,
            created_at=created_at,
        )
        self.tickets[ticket.id] = ticket
        return ticket

    def delete_ticket(self, ticket_id: str) -> Ticket:
        """The deleted ticket. Raises: NotFoundError."""
        ticket = self.tickets.pop(ticket_id, None)
        if ticket is None:
            raise NotFoundError(f"no ticket {ticket_id!r}")
        return ticket

    def search(self, query: SearchQuery) -> list[SearchHit]:
        """All matches, devices first. A filter on site or status excludes tickets without a device."""
        wanted, hits = query.text.casefold(), []
        devices = self.select_devices(site=query.filter.site, status=query.filter.status)
        if "device" in query.kinds:
            for device in devices:
                if wanted in f"{device.hostname} {device.operating_system} {device.note}".casefold():
                    hits.append(SearchHit(kind="device", id=device.id, summary=f"{device.hostname} ({device.site})"))
        if "ticket" in query.kinds:
            filtered = query.filter != SearchFilter()
            ids = {device.id for device in devices}
            for ticket in self.tickets.values():
                about = " ".join((ticket.subject, ticket.description, *ticket.tags)).casefold()
                if wanted in about and (not filtered or ticket.device_id in ids):
                    hits.append(SearchHit(kind="ticket", id=ticket.id, summary=ticket.subject))
        return hits


def seeded_inventory(tenant: str, *, now: datetime) -> Inventory:
    """A tenant's initial inventory, derived from its name."""
    devices = {}
    for number in range(1, DEVICE_COUNT + 1):
        picks = hashlib.sha256(f"{tenant}:{number}".encode()).digest()
        site = _SITES[number % len(_SITES)]
        system, kind = _SYSTEMS[picks[0] % len(_SYSTEMS)]
        device = Device(
            id=f"dev-{number:03}",
            hostname=f"{site[:3]}-{kind}-{picks[1:4].hex()}",
            site=site,
            status=_STATUSES[number % len(_STATUSES)],
            operating_system=system,
            last_seen_at=now - timedelta(minutes=picks[4]),
        )
        devices[device.id] = device
    return Inventory(devices=devices)
