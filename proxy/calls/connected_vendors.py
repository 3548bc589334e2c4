"""Tells a client that its person has connected a vendor, whose page the client was sent to. docs/decisions/0108"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.caller import Caller
from proxy.calls.decide import may_use_vendor
from proxy.outcomes import Denied
from proxy.protocol import jsonrpc, url_elicitation
from proxy.protocol.modern import elicitation
from proxy.request_context import RequestContext
from proxy.sessions import client_session


class ConnectedVendors:
    """Of the caller of one stream. The page of every vendor that it could be sent to counts: clients ignore others."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._caller: Caller = context.caller
        self._unconnected = frozenset(self._find_unconnected())

    def take(self) -> list[bytes]:
        """The notifications since the last time."""
        caller, session = self._context.caller, self._context.session
        if caller is self._caller or session is None:
            return []
        before, self._caller = self._unconnected, caller
        self._unconnected = frozenset(self._find_unconnected())
        connected = [
            vendor.slug
            for vendor in caller.catalog.all()
            if vendor.slug in before and not isinstance(may_use_vendor(caller, vendor), Denied)
        ]
        ids = [client_session.elicitation_id(session, slug) for slug in connected]
        return [jsonrpc.notification(url_elicitation.COMPLETE, {"elicitationId": each}) for each in ids]

    def _find_unconnected(self) -> Iterator[str]:
        """The vendors that the client is sent to a page for."""
        session = self._context.session
        if session is None or not elicitation.can_open_pages(session.capabilities):
            return
        for vendor in self._caller.catalog.all():
            usable = may_use_vendor(self._caller, vendor)
            if isinstance(usable, Denied) and usable.is_theirs:
                yield vendor.slug
