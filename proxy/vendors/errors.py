"""Pure: errors of a vendor connection. No text contains an address, header or body of the vendor."""

from __future__ import annotations

from enum import Enum

from gateway.lib.sentences import sentence
from proxy.outcomes import Denied, VendorFault
from proxy.protocol.replies import RpcError


class Evidence(Enum):
    """Evidence of a failure about the way to the vendor; the circuits count it."""

    RESPONDED = 1  # it responds; the failure is elsewhere
    CONNECT_FAILED = 2  # no connection
    NO_RESPONSE = 3  # connected, but no head of an answer came
    NONE = 4  # nothing was tried, or the fault is ours
    SENT_LATE = 5  # sent after a wait in our own line; the time left was too short


class VendorProblem(Exception):
    """The vendor gave no usable answer. `detail` may be shown to the caller."""

    def __init__(
        self,
        fault: VendorFault,
        detail: str,
        *,
        evidence: Evidence = Evidence.RESPONDED,
        retry_after_s: int | None = None,
        status: int | None = None,
        scopes_wanted: str = "",
    ) -> None:
        super().__init__(detail)
        self.fault, self.detail, self.evidence, self.retry_after_s = fault, detail, evidence, retry_after_s
        # Of HTTP; None if the failure is not one.
        self.status = status
        # The scopes that a call needs and the token lacks, separated by spaces.
        self.scopes_wanted = scopes_wanted

    def copy(self) -> VendorProblem:
        """A copy to raise: the traceback refers to the frames that hold the original, a reference cycle."""
        return VendorProblem(
            self.fault,
            self.detail,
            evidence=self.evidence,
            retry_after_s=self.retry_after_s,
            status=self.status,
            scopes_wanted=self.scopes_wanted,
        )

    @property
    def is_rejection(self) -> bool:
        """The vendor does not know the token. A 403 knows it, and asks for more."""
        return self.status == 401

    @property
    def is_own_timeout(self) -> bool:
        """Our deadline ended a request that had been sent."""
        return self.fault is VendorFault.TIMEOUT and self.evidence in (
            Evidence.RESPONDED,
            Evidence.NO_RESPONSE,
            Evidence.SENT_LATE,
        )

    @property
    def is_interrupted(self) -> bool:
        return self.detail == interrupted().detail

    @property
    def is_unknown_host(self) -> bool:
        return self.detail == unknown_host().detail


class CallEnded(Exception):
    """The caller lost its right while the vendor waited for an answer: the call ends, and the vendor gets none."""

    def __init__(self, denied: Denied) -> None:
        super().__init__(denied.denial.value)
        self.denied = denied


class AddressNotAllowed(VendorProblem):
    """The outbound rules forbid the address; the catalog or the credential is wrong."""

    def __init__(self) -> None:
        super().__init__(
            VendorFault.UNAVAILABLE, sentence("The vendor’s address is not allowed."), evidence=Evidence.NONE
        )


class StaleSession(Exception):
    """The vendor does not know the session. `is_certain`: it refused before it ran anything."""

    def __init__(self, status: int, error: RpcError | None, *, is_certain: bool) -> None:
        super().__init__()
        self.status, self.error, self.is_certain = status, error, is_certain  # `error`: the JSON-RPC error, if any


class OtherEra(StaleSession):
    """The vendor refused a request, before it ran anything, because of the revision of MCP that it is of."""

    def __init__(self, status: int, error: RpcError | None) -> None:
        super().__init__(status, error, is_certain=True)


def unavailable(
    detail: str = sentence("The vendor couldn’t be reached."),
    evidence: Evidence = Evidence.NONE,
    status: int | None = None,
) -> VendorProblem:
    return VendorProblem(VendorFault.UNAVAILABLE, detail, evidence=evidence, status=status)


def unknown_host() -> VendorProblem:
    return unavailable(sentence("The vendor’s host name was not found."), Evidence.CONNECT_FAILED)


def bulkhead_full() -> VendorProblem:
    text = sentence("Your organization has too many calls in progress at this vendor. Try again in a moment.")
    return VendorProblem(VendorFault.UNAVAILABLE, text, evidence=Evidence.NONE, retry_after_s=1)


def circuit_open(retry_after_s: int) -> VendorProblem:
    text = sentence(
        "The vendor couldn’t be reached several times in a row. Next attempt in %(retry_after_s)s s.",
        retry_after_s=retry_after_s,
    )
    return VendorProblem(VendorFault.UNAVAILABLE, text, evidence=Evidence.NONE, retry_after_s=retry_after_s)


def rate_limited(retry_after_s: int | None) -> VendorProblem:
    return VendorProblem(
        VendorFault.UNAVAILABLE,
        sentence("The vendor is limiting calls. Try again later."),
        retry_after_s=retry_after_s,
        status=429,
    )


def timeout(evidence: Evidence = Evidence.NONE) -> VendorProblem:
    return VendorProblem(VendorFault.TIMEOUT, sentence("The vendor didn’t respond in time."), evidence=evidence)


def bad_response(detail: str) -> VendorProblem:
    return VendorProblem(
        VendorFault.BAD_RESPONSE, sentence("The vendor sent an unusable response: %(detail)s.", detail=detail)
    )


def no_common_version() -> VendorProblem:
    return bad_response("it refuses every protocol version that the gateway supports")


def interrupted() -> VendorProblem:
    return bad_response("it was cut off or is not HTTP")


def no_response() -> VendorProblem:
    return bad_response("it ended without an answer")


def rejected_credentials(status: int | None = None, scopes_wanted: str = "") -> VendorProblem:
    """401 or 403 of the vendor. A 401 of the gateway would ask the caller to log in again."""
    text = sentence("The vendor rejected the stored credentials. An admin can replace them.")
    return VendorProblem(VendorFault.REJECTED_CREDENTIALS, text, status=status, scopes_wanted=scopes_wanted)
