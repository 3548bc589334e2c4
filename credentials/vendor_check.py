"""Ask a vendor whether it accepts credentials: one request with a deadline. Spec: D63"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from django.conf import settings

from credentials.errors import CredentialRejected, EndpointNotAllowed
from gateway.catalog.templates import vendor_headers, vendor_url
from gateway.catalog.vendor import Vendor
from gateway.lib.outbound import AddressRefused, check_url
from gateway.lib.sentences import sentence

# Seconds for the whole check. Spec: D63
CHECK_TIMEOUT_S = 5.0
# Some tool servers answer 200 and report their vendor's refusal in the text of a tool error.
_REFUSED_TEXT = re.compile(
    r"\b(?:http|status|code|error)\W{1,3}40[13]\b|\bunauthori[sz]ed\b|\bforbidden\b"
    r"|\bauthentication[ _](?:failed|error|required)\b"
    r"|\b(?:invalid|incorrect|wrong|bad|expired|revoked|missing)[ _-]?(?:api[ _-]?|access[ _-]?)?"
    r"(?:keys?|tokens?|secrets?|credentials?|password)\b",
    re.IGNORECASE,
)
# Characters of the error text that are searched: bounds the work of the regular expression.
_TEXT_LIMIT = 2_000


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The vendor's last answer. `status`: HTTP status, None without an answer; `error_text` is never shown."""

    status: int | None
    tools_listed: bool = False
    is_error: bool = False
    error_text: str = ""
    # How many tools it listed; None if it did not say.
    tools: int | None = None
    # Why there is no answer, in one sentence; "" if the time was up.
    failure: str = ""


class VendorProbe(Protocol):
    """Opens a session with the vendor, sends one request, closes it. Follows no redirect."""

    async def __call__(
        self, url: str, headers: Mapping[str, str], method: str, params: Mapping[str, Any], timeout_s: float
    ) -> ProbeAnswer:
        """Send `initialize`, then `method` with `params`.

        Raises: AddressRefused if the address may not be reached; OSError or TimeoutError without an answer.
        """
        ...


class Verdict(StrEnum):
    VALIDATED = "validated"  # the vendor accepted them
    # The vendor did not say; the fields are stored.
    UNCONFIRMED = "unconfirmed"
    REJECTED = "rejected"  # the vendor refused them; nothing is stored
    ADDRESS_REFUSED = "address_refused"  # they lead where the service must not go; nothing is stored


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdict and its reason in one sentence."""

    verdict: Verdict
    detail: str
    # How many tools the vendor listed; None if it did not say.
    tools: int | None = None
    # Of a refusal over HTTP.
    status: int | None = None

    @property
    def validated(self) -> bool:
        return self.verdict is Verdict.VALIDATED

    def raise_if_refused(self, vendor: str = "The vendor") -> None:
        """Raises: CredentialRejected, EndpointNotAllowed."""
        if self.verdict is Verdict.REJECTED:
            status = f" ({self.status})" if self.status else ""
            raise CredentialRejected(
                sentence(
                    "%(vendor)s rejected these credentials%(status)s. Nothing was saved.", vendor=vendor, status=status
                )
            )
        if self.verdict is Verdict.ADDRESS_REFUSED:
            raise EndpointNotAllowed


NO_ANSWER = CheckResult(Verdict.UNCONFIRMED, sentence("The vendor didn’t respond in time."))
_ADDRESS_REFUSED = CheckResult(Verdict.ADDRESS_REFUSED, sentence("This address can’t be reached from here."))


async def check(vendor: Vendor, fields: Mapping[str, str], *, ask: VendorProbe) -> CheckResult:
    """Ask the vendor within CHECK_TIMEOUT_S. `fields`: as returned by `check_fields`. Spec: §4.6 · D63, D97

    Calls the catalog's validation tool, or lists the tools if there is none.
    """
    headers, url = vendor_headers(vendor, fields), vendor_url(vendor, fields)
    method, params = _question(vendor)
    try:
        # Refuses bad spellings at once; the probe also checks the resolved address.
        check_url(url, allow_private=settings.ALLOW_PRIVATE_ENDPOINTS, own_url=settings.BASE_URL)
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            answer = await ask(url, headers, method, params, CHECK_TIMEOUT_S)
    except AddressRefused:
        return _ADDRESS_REFUSED
    except (TimeoutError, OSError):
        return NO_ANSWER
    return judge(answer, asked_tool=vendor.validation is not None)


def _question(vendor: Vendor) -> tuple[str, dict[str, Any]]:
    if vendor.validation is None:
        return "tools/list", {}
    return "tools/call", {"name": vendor.validation.tool, "arguments": dict(vendor.validation.arguments)}


def judge(answer: ProbeAnswer, *, asked_tool: bool) -> CheckResult:
    """Pure."""
    # Only a clear refusal rejects: an outage at the vendor must not refuse good fields.
    if answer.status is None:
        return CheckResult(Verdict.UNCONFIRMED, answer.failure) if answer.failure else NO_ANSWER
    if answer.status in {401, 403}:
        return CheckResult(
            Verdict.REJECTED, sentence("The vendor answered %(status)s.", status=answer.status), status=answer.status
        )
    if not 200 <= answer.status < 300:
        return CheckResult(Verdict.UNCONFIRMED, sentence("The vendor answered %(status)s.", status=answer.status))
    if answer.is_error:
        if _REFUSED_TEXT.search(answer.error_text[:_TEXT_LIMIT]):
            return CheckResult(Verdict.REJECTED, sentence("The vendor’s tool rejected the credentials."))
        return CheckResult(Verdict.UNCONFIRMED, sentence("The vendor’s tool reported an error."))
    if asked_tool or answer.tools_listed:
        return CheckResult(Verdict.VALIDATED, sentence("The vendor accepted the credentials."), answer.tools)
    return CheckResult(Verdict.UNCONFIRMED, sentence("The vendor responded, but didn’t list its tools."))
