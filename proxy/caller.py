"""Pure: a caller's rights as the snapshot holds them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from credentials.data_key_cache import WrappedKey
from credentials.resolve import CredentialIndex
from gateway.catalog.catalog import Catalog
from gateway.catalog.vendor import Vendor
from orgs.access_rules import Allowlists
from orgs.allowed_items import ItemLists
from orgs.principal import Principal
from proxy.vendors.destination import Destination

EpochNames = tuple[str, str, str]  # of subject, organization and catalog


@dataclass(frozen=True, slots=True)
class OrganizationAccess:
    """An organization's part of every access decision. Ciphertexts only, opened when a vendor session needs them."""

    org_id: uuid.UUID
    name: str
    default_access_all: bool
    credentials: Mapping[str, CredentialIndex]  # by vendor
    wrapped_keys: tuple[WrappedKey, ...]
    allowlists: Allowlists
    # By credential id: the vendor and its computed destination, without opened fields.
    destinations: dict[uuid.UUID, tuple[Vendor, Destination]] = field(default_factory=dict, compare=False, repr=False)
    # Vendors that people may not connect for themselves.
    without_people: frozenset[str] = frozenset()
    item_lists: ItemLists = field(default_factory=dict)
    # By vendor, where the organization has chosen: the capabilities that the vendor may rely on.
    questions: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwnRights:
    """A bearer's own part of a caller: what its statement read, and when (monotonic)."""

    principal: Principal
    key_pk: uuid.UUID | None  # of the agent key
    audiences: frozenset[str]
    # Unix time.
    expires_at_s: float
    loaded_at_s: float
    # 0 to 1: how much earlier than others these rows are loaded again.
    spread: float
    # Unix time and vendor of each access of `principal` that has an end, the next one first.
    access_ends: tuple[tuple[float, str], ...] = ()
    # Unix time of the next end: of the bearer, or of an access.
    holds_until_s: float = field(init=False)

    def __post_init__(self) -> None:
        next_end_s = self.access_ends[0][0] if self.access_ends else self.expires_at_s
        object.__setattr__(self, "holds_until_s", min(self.expires_at_s, next_end_s))

    def at(self, now_s: float) -> OwnRights:
        """The rights at a later time, without the access that has ended by then. No row is read for it."""
        ended = {vendor for end_s, vendor in self.access_ends if end_s <= now_s}
        if not ended or self.principal.granted_vendors is None:
            return self
        principal = replace(self.principal, granted_vendors=self.principal.granted_vendors - ended)
        return replace(self, principal=principal, access_ends=self.access_ends[len(ended) :])

    @property
    def is_agent_key(self) -> bool:
        return self.key_pk is not None


@dataclass(frozen=True, slots=True)
class Caller:
    """A verified bearer with its rights, in three parts: its own, its organization's, the catalog.

    A part is stale once its current epoch differs from the one in `epochs`.
    """

    own: OwnRights
    principal: Principal  # of `own`
    organization: OrganizationAccess
    catalog: Catalog
    # Monotonic times at which the parts were loaded, in the order of `epochs`.
    loaded_at_s: tuple[float, float, float]
    # Of the oldest part.
    as_of_s: float
    # Monotonic time until which epochs can confirm all parts.
    fresh_until_s: float
    epoch_names: EpochNames
    # None if they could not be read before the rows.
    epochs: tuple[str, ...] | None
