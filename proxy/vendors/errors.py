"""Pure: what a vendor connection may report upward. No text holds an address, a header or a body of the vendor."""

from __future__ import annotations

from enum import Enum

from proxy.outcomes import VendorFault
from proxy.protocol.replies import VendorError


class Sign(Enum):
    """What a failure says about the way to the vendor."""

    ANSWERED = 1  # it is there, and something else is wrong
    UNREACHED = 2  # no connection could be made
    UNANSWERED = 3  # connected, but not even the head of an answer came
    NOTHING = 4  # we did not try, or the fault is ours
    SENT_LATE = 5  # sent after waiting in a line of ours, and not answered in the time that was left


class VendorProblem(Exception):
    """The vendor did not answer properly; `fault` says how, the text is fit for a caller."""

    def __init__(
        self, fault: VendorFault, detail: str, *, sign: Sign = Sign.ANSWERED, retry_after_s: int | None = None
    ) -> None:
        super().__init__(detail)
        self.fault, self.detail, self.sign, self.retry_after_s = fault, detail, sign, retry_after_s

    def again(self) -> VendorProblem:
        """The same, to be raised by whoever goes on keeping this one.

        What was raised knows the frames it went through, and they know who keeps it: a ring that only garbage
        collection would part.
        """
        return VendorProblem(self.fault, self.detail, sign=self.sign, retry_after_s=self.retry_after_s)

    @property
    def is_own_timeout(self) -> bool:
        """We stopped waiting for an answer to what had been sent."""
        return self.fault is VendorFault.TIMEOUT and self.sign in (Sign.ANSWERED, Sign.UNANSWERED, Sign.SENT_LATE)

    @property
    def is_broken_off(self) -> bool:
        """The connection ended in the middle of an answer."""
        return self.detail == broken_off().detail


class AddressNotAllowed(VendorProblem):
    """The vendor's address is one that the service must not reach: the catalog's or the credential's fault."""

    def __init__(self) -> None:
        super().__init__(VendorFault.UNAVAILABLE, "The vendor's address is not allowed.", sign=Sign.NOTHING)


class StaleSession(Exception):
    """The vendor no longer knows the session. If that `is_certain`, it refused before running anything.

    `error` is the JSON-RPC error in which it said so, if there was one, and `status` that of HTTP.
    """

    def __init__(self, status: int, error: VendorError | None, *, is_certain: bool) -> None:
        super().__init__()
        self.status, self.error, self.is_certain = status, error, is_certain


def unavailable(detail: str = "The vendor could not be reached.", sign: Sign = Sign.NOTHING) -> VendorProblem:
    """Refused, unresolvable, closed before an answer, 5xx."""
    return VendorProblem(VendorFault.UNAVAILABLE, detail, sign=sign)


def crowded() -> VendorProblem:
    """The organization has as many calls under way at the vendor as it may, and too many that wait."""
    text = "Too many calls of the organization are under way at the vendor."
    return VendorProblem(VendorFault.UNAVAILABLE, text, sign=Sign.NOTHING, retry_after_s=1)


def held_back(retry_after_s: int) -> VendorProblem:
    """The circuit is open: it is no use to try before the pause is over."""
    text = f"The vendor could not be reached several times in a row. It is tried again in {retry_after_s} s."
    return VendorProblem(VendorFault.UNAVAILABLE, text, sign=Sign.NOTHING, retry_after_s=retry_after_s)


def slow_down(retry_after_s: int | None) -> VendorProblem:
    """429; how long to wait is passed on."""
    return VendorProblem(VendorFault.UNAVAILABLE, "The vendor asks to slow down.", retry_after_s=retry_after_s)


def timeout(sign: Sign = Sign.NOTHING) -> VendorProblem:
    """A deadline passed."""
    return VendorProblem(VendorFault.TIMEOUT, "The vendor did not answer in time.", sign=sign)


def bad_response(detail: str) -> VendorProblem:
    """It answered, but not what the protocol allows."""
    return VendorProblem(VendorFault.BAD_RESPONSE, f"The vendor sent an unusable answer: {detail}.")


def broken_off() -> VendorProblem:
    """The connection ended in the middle of an answer, or went on with something else."""
    return bad_response("it broke off or is not HTTP")


def no_answer() -> VendorProblem:
    """All that it said is there, and the answer is not among it."""
    return bad_response("it ended without an answer")


def rejected_credentials() -> VendorProblem:
    """401 or 403: ours to report, never to pass on as a 401 of the gateway."""
    return VendorProblem(
        VendorFault.REJECTED_CREDENTIALS, "The vendor rejected the stored credentials. An admin can replace them."
    )
