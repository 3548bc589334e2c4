"""Pure: what one caller may reach, as the snapshot holds it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orgs.grants import Allowlists
from orgs.principal import Principal

if TYPE_CHECKING:
    from credentials.resolve import CredentialRef
    from credentials.sealing import WrappedKey
    from gateway.catalog.registry import Catalog
    from gateway.catalog.vendor import Vendor
    from proxy.vendors.pool import Destination


@dataclass(frozen=True, slots=True)
class OrganizationAccess:
    """One organization's side of every decision. Ciphertexts only: fields are opened when a session needs them.

    `destinations` keeps what was worked out for a credential (by its id) and a vendor, without the opened fields.
    """

    org_id: uuid.UUID
    name: str
    default_access_all: bool
    credentials: Mapping[str, tuple[CredentialRef, ...]]
    wrapped_keys: tuple[WrappedKey, ...]
    allowlists: Allowlists
    destinations: dict[uuid.UUID, tuple[Vendor, Destination]] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Caller:
    """A verified bearer with everything a decision needs; dead when an epoch differs from `epochs`.

    `expires_at_s` is Unix time, the others are monotonic: when its own rows were loaded, the age of its oldest part,
    and until when it is believed while the epochs are unknown.
    """

    principal: Principal
    organization: OrganizationAccess
    catalog: Catalog
    is_agent_key: bool
    audiences: frozenset[str]
    expires_at_s: float
    loaded_at_s: float
    as_of_s: float
    unconfirmed_until_s: float
    epoch_names: tuple[str, ...]
    epochs: tuple[str, ...] | None
