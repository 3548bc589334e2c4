"""Pure: the ways a tool call can end. The pipeline returns one of these; each route words it in its own protocol."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from credentials.resolve import CredentialRef


class Denial(StrEnum):
    """Which rule refused the call. The value is the error code in the audit row."""

    SCOPE = "insufficient_scope"
    UNKNOWN_VENDOR = "unknown_vendor"
    NO_GRANT = "no_server_access"
    NO_CREDENTIALS = "no_credentials"
    UNUSABLE_CREDENTIALS = "unusable_credentials"
    TOOL_NOT_ALLOWED = "tool_not_allowed"


class VendorFault(StrEnum):
    """What went wrong at the vendor: `reason` in answers, the error code in the audit row. Spec: D105"""

    UNAVAILABLE = "vendor_unavailable"
    TIMEOUT = "vendor_timeout"
    BAD_RESPONSE = "bad_vendor_response"
    REJECTED_CREDENTIALS = "vendor_rejected_credentials"


class CacheStatus(StrEnum):
    """What the result cache did for a call: the value of X-Cache. Spec: D102, D103"""

    HIT = "HIT"  # no vendor call of its own
    MISS = "MISS"
    BYPASS = "BYPASS"


@dataclass(frozen=True, slots=True)
class Delivered:
    """The vendor answered with a result; `raw_result` is its JSON, untouched."""

    raw_result: bytes
    is_error: bool


@dataclass(frozen=True, slots=True)
class VendorError:
    """The vendor answered with a JSON-RPC error; `raw_error` is its JSON, untouched."""

    raw_error: bytes
    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The vendor did not answer properly. `detail` is a sentence without internal addresses.

    `credential` is the one that was used, where the tool's own record does not know it yet.
    """

    vendor: str
    fault: VendorFault
    detail: str
    retry_after_s: int | None = None
    credential: CredentialRef | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """A rule refused. `text` names the rule and who can change it."""

    denial: Denial
    text: str
    vendor: str = ""
    scope_needed: str = ""


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """No tool the caller may see has this name. `vendor` is the one that it was looked for at, if any."""

    name: str
    vendor: str = ""


@dataclass(frozen=True, slots=True)
class BadArguments:
    """The arguments cannot be put together as the tool wants them."""

    text: str


@dataclass(frozen=True, slots=True)
class RateLimited:
    """The caller's window is full."""

    retry_after_s: int


@dataclass(frozen=True, slots=True)
class Broken:
    """A fault of ours ended the call. What is known of it is in the log, under the id of the request."""


Outcome = Delivered | VendorError | Failed | Denied | UnknownTool | BadArguments | RateLimited | Broken


@dataclass(frozen=True, slots=True)
class ClientClosed:
    """The caller left while the call ran, and ended it; nobody is answered."""
