"""Slots of one process for slow answers, shared by organizations, and the refusals of those that find none."""

from __future__ import annotations

import uuid

from gateway.lib.errors import DomainError
from gateway.lib.shared_slots import SharedSlots, SlotResult


class ShareTaken(DomainError):
    """The organization's limit is reached."""

    code, status = "rate_limited", 429


class SlotsTaken(DomainError):
    """The process's limit is reached."""

    code, status = "overloaded", 503


class OrganizationSlots(SharedSlots[uuid.UUID]):
    """`share_taken` and `slots_taken` are the sentences of the refusals; `retry_after_s` goes into both."""

    def __init__(self, *, size: int, of_owner: int, retry_after_s: int, share_taken: str, slots_taken: str) -> None:
        super().__init__(size=size, of_owner=of_owner)
        self._refusals: dict[SlotResult, tuple[type[DomainError], str]] = {
            SlotResult.OWNER_HAS_ALL_OF_ITS: (ShareTaken, share_taken),
            SlotResult.NONE_FREE: (SlotsTaken, slots_taken),
        }
        self._headers = {"Retry-After": str(retry_after_s)}

    def require(self, organization_id: uuid.UUID) -> None:
        """Takes a slot, for which the caller must call `give_back`. Raises: ShareTaken; SlotsTaken."""
        result = self.take(organization_id)
        if result in self._refusals:
            kind, message = self._refusals[result]
            refusal = kind(message)
            refusal.headers = self._headers
            raise refusal
