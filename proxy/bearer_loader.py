"""Identities of bearers: the text is read on the event loop, the row by the hot path's database."""

from __future__ import annotations

import uuid
from functools import partial

from gateway.coordination import epochs
from oauth_ext import bearer as bearers
from oauth_ext.bearer import BearerIdentity, ExpiredBearer, InvalidBearer, Presented
from oauth_ext.jwt import keys
from oauth_ext.jwt.verify import UnknownKey
from proxy.caller import EpochNames
from proxy.hot_path_database import HotPathDatabase


class BearerLoader:
    def __init__(self, database: HotPathDatabase) -> None:
        self._database = database

    async def read(self, bearer: str) -> Presented:
        """Raises: InvalidBearer; DatabaseUnavailable."""
        try:
            return bearers.read_bearer_with(bearer, keys.loaded_key_set())
        except UnknownKey:  # the keys in memory are too old, or a key is new
            return await self._database.run_in_thread(partial(bearers.read_bearer, bearer))

    async def identity(self, presented: Presented) -> BearerIdentity:
        """Raises: InvalidBearer; DatabaseUnavailable."""
        row = await self._database.read(presented.statement, presented.key)
        return bearers.identity_of(presented, row)

    async def epoch_names(self, presented: Presented) -> EpochNames:
        """The epochs that the rights depend on. A token says them itself; of an agent key the row does.

        Raises: InvalidBearer; DatabaseUnavailable.
        """
        if presented.claims is not None:
            return epoch_names(presented.claims.subject, presented.claims.org_id)
        identity = await self.identity(presented)
        return epoch_names(identity.subject, identity.org_id)

    async def is_signed_by_us(self, bearer: str) -> bool:
        """Whether it is an access token of ours, perhaps expired or revoked. Raises: DatabaseUnavailable."""
        if not bearers.may_be_access_token(bearer):
            return False
        try:
            await self.read(bearer)
        except ExpiredBearer:
            return True
        except InvalidBearer:
            return False
        return True


def epoch_names(subject: str, org_id: uuid.UUID) -> EpochNames:
    """The epochs that a subject's rights depend on."""
    return epochs.subject(subject), epochs.organization(org_id), epochs.CATALOG
