"""The part of a session that is made of its credential."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from proxy.protocol.secret_mask import SecretMask
from proxy.vendors.destination import Destination, PoolKey

if TYPE_CHECKING:
    from proxy.vendors.session import VendorSession


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


class SessionListener(Protocol):
    """The owner of a session. Methods may not block."""

    def ended_session_unused(self, session: VendorSession) -> None:
        """The last request of a session with `is_ended` is answered."""
        ...

    def tools_changed(self, key: PoolKey) -> None:
        """The vendor announced a change of its tools."""
        ...

    def secret_echoed(self, key: PoolKey, tool: str) -> None:
        """The answer of this tool contained a stored credential."""
        ...
