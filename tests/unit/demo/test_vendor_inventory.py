"""The demo vendor's inventory: seeds, searches and the ticket bound."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from demo import vendor_inventory
from demo.vendor_inventory import Inventory, LimitReachedError, Requester, SearchFilter, SearchQuery, seeded_inventory

NOW = datetime(2027, 1, 15, tzinfo=UTC)


@pytest.fixture
def inventory() -> Inventory:
    return seeded_inventory("tenant", now=NOW)


def add_ticket(inventory: Inventory, subject: str, device_id: str | None = None) -> str:
    return inventory.create_ticket(
        subject=subject,
        description="",
        priority="normal",
        tags=["printer"],
        requester=Requester(name="Ada", email="ada@example.com"),
        device_id=device_id,
        created_at=NOW,
    ).id


def test_seed_is_the_same_for_the_same_tenant_only(inventory: Inventory) -> None:
    assert seeded_inventory("tenant", now=NOW) == inventory
    assert seeded_inventory("another", now=NOW) != inventory
    assert all(device.last_seen_at <= NOW for device in inventory.devices.values())


def test_search_looks_where_it_should(inventory: Inventory) -> None:
    device = inventory.update_device("dev-001", status=None, note="near the printer")
    about_it, about_none = add_ticket(inventory, "Paper jam", device.id), add_ticket(inventory, "Toner")

    def ids(**query: object) -> list[str]:
        return [hit.id for hit in inventory.search(SearchQuery.model_validate({"text": "PRINTER", **query}))]

    assert ids() == ["dev-001", about_it, about_none]
    assert ids(kinds=["device"]) == ["dev-001"]
    assert ids(kinds=["ticket"]) == [about_it, about_none]
    # A ticket has a site through its device only.
    assert ids(filter=SearchFilter(site=device.site)) == ["dev-001", about_it]
    assert ids(filter={"status": "offline"}) == []
    assert ids(text="nothing of the kind") == []


def test_tickets_are_bounded(inventory: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor_inventory, "MAX_TICKETS", 2)
    first, _ = add_ticket(inventory, "one"), add_ticket(inventory, "two")
    with pytest.raises(LimitReachedError, match="delete some first"):
        add_ticket(inventory, "three")
    inventory.delete_ticket(first)
    assert add_ticket(inventory, "three") == "T-1003"
