"""Pure: outcomes of a tool call. Each route renders them in its own protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from credentials.resolve import CredentialRef


class Denial(StrEnum):
    """The rule that refused a call; its value is the error code of the audit row."""

    SCOPE = "insufficient_scope"
    UNKNOWN_VENDOR = "unknown_vendor"
    NO_SERVER_ACCESS = "no_server_access"
    NO_CREDENTIALS = "no_credentials"
    UNUSABLE_CREDENTIALS = "unusable_credentials"
    TOOL_NOT_ALLOWED = "tool_not_allowed"
    ITEM_NOT_ALLOWED = "item_not_allowed"
    VENDOR_SCOPE = "vendor_scope_needed"


class VendorFault(StrEnum):
    """A vendor's failure: `reason` in answers, error code of the audit row. Spec: D105"""

    UNAVAILABLE = "vendor_unavailable"
    TIMEOUT = "vendor_timeout"
    BAD_RESPONSE = "bad_vendor_response"
    REJECTED_CREDENTIALS = "vendor_rejected_credentials"


class CallFault(StrEnum):
    """The other ends of a call that did not succeed: error code of the audit row."""

    TOOL_ERROR = "tool_error"
    VENDOR_ERROR = "vendor_error"
    CLIENT_CLOSED = "client_closed"
    GATEWAY_STOPPED = "gateway_stopped"
    INTERNAL_ERROR = "internal_error"
    UNKNOWN_TOOL = "unknown_tool"
    UNKNOWN_ITEM = "unknown_item"
    BAD_ARGUMENTS = "bad_arguments"
    RATE_LIMITED = "rate_limited"


class CacheStatus(StrEnum):
    """The value of X-Cache. Spec: D102, D103"""

    HIT = "HIT"  # answered without a vendor call
    MISS = "MISS"
    BYPASS = "BYPASS"


@dataclass(frozen=True, slots=True)
class Delivered:
    """The vendor's result; `raw_result` is its unchanged JSON. `is_personal`: it may hold what the caller answered, and
    is nobody else's."""

    raw_result: bytes
    is_error: bool
    is_personal: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The vendor asks the caller for something before it goes on. `result`: the members of the caller's result."""

    result: Mapping[str, Any]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class VendorError:
    """The vendor's JSON-RPC error; `raw_error` is its unchanged JSON."""

    raw_error: bytes
    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The vendor did not respond properly. `detail` holds no internal address."""

    vendor: str
    fault: VendorFault
    detail: str
    # Seconds.
    retry_after_s: int | None = None
    # The credential used, where the audit record does not hold it yet.
    credential: CredentialRef | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """A rule refused. `text` names the rule and who can change it; `page`: the path where the person can ask for it."""

    denial: Denial
    text: str
    vendor: str = ""
    scope_needed: str = ""
    page: str = ""
    # The words before the page's address.
    action: str = "Ask for it"
    # The caller is a person who can mend it on the page.
    is_theirs: bool = False


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """No tool that the caller may see has this name. `vendor` is the one searched, if any."""

    name: str
    vendor: str = ""


@dataclass(frozen=True, slots=True)
class UnknownItem:
    """No resource or prompt that the caller may use has this address or name. `is_offered`: some vendor of the caller
    has such things. `vendor` is the one searched, if any."""

    name: str
    vendor: str = ""
    is_address: bool = False
    is_offered: bool = True


@dataclass(frozen=True, slots=True)
class BadArguments:
    """The arguments cannot be assembled as the tool requires, or (`is_header_mismatch`) the request's headers say
    something else than they do."""

    text: str
    is_header_mismatch: bool = False


@dataclass(frozen=True, slots=True)
class RateLimited:
    retry_after_s: int


@dataclass(frozen=True, slots=True)
class InternalError:
    """An internal error ended the call; the log holds it under the request id."""


Outcome = Delivered | Asked | VendorError | Failed | Denied | UnknownTool | BadArguments | RateLimited | InternalError
ItemOutcome = Outcome | UnknownItem


@dataclass(frozen=True, slots=True)
class ClientClosed:
    """The caller disconnected, which ended the call. No answer is sent."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """The process stopped before the call ended. The answer is 503."""
