"""Pure: what a vendor connection may report upward. No text holds an address, a header or a body of the vendor."""

from __future__ import annotations

from proxy.outcomes import VendorFault


class VendorProblem(Exception):
    """The vendor did not answer properly; `fault` says how, the text is fit for a caller."""

    def __init__(self, fault: VendorFault, detail: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(detail)
        self.fault, self.detail, self.retry_after_s = fault, detail, retry_after_s


class StaleSession(Exception):
    """The vendor no longer knows the session; it refused before running anything, so the call may be sent again."""


def unavailable(detail: str = "The vendor could not be reached.") -> VendorProblem:
    """Refused, unresolvable, closed before an answer, 5xx."""
    return VendorProblem(VendorFault.UNAVAILABLE, detail)


def slow_down(retry_after_s: int | None) -> VendorProblem:
    """429; how long to wait is passed on."""
    return VendorProblem(VendorFault.UNAVAILABLE, "The vendor asks to slow down.", retry_after_s=retry_after_s)


def timeout(detail: str = "The vendor did not answer in time.") -> VendorProblem:
    """A deadline passed."""
    return VendorProblem(VendorFault.TIMEOUT, detail)


def bad_response(detail: str) -> VendorProblem:
    """It answered, but not what the protocol allows."""
    return VendorProblem(VendorFault.BAD_RESPONSE, f"The vendor sent an unusable answer: {detail}.")


def rejected_credentials() -> VendorProblem:
    """401 or 403: ours to report, never to pass on as a 401 of the gateway."""
    return VendorProblem(
        VendorFault.REJECTED_CREDENTIALS, "The vendor rejected the stored credentials. An admin can replace them."
    )
