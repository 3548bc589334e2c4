"""The part of a session that is made of its credential."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.protocol.secret_mask import SecretMask
from proxy.vendors.destination import Destination


@dataclass(frozen=True, slots=True, repr=False)
class VendorAccess:
    """Address, headers and the secrets to mask in answers. Contains the credential."""

    url: str
    headers: Mapping[str, str]
    secrets: SecretMask = field(default_factory=SecretMask)

    @classmethod
    def of(cls, destination: Destination) -> VendorAccess:
        """Opens the credential. Raises: VendorProblem."""
        return cls(*destination.open(), SecretMask(destination.secrets()))

    def __repr__(self) -> str:
        return "VendorAccess()"
