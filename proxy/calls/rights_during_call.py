"""A caller's rights in the middle of its call: minutes may have passed since it was admitted. docs/decisions/0117"""

from __future__ import annotations

from credentials.resolve import CredentialRef
from oauth_ext.bearer import InvalidBearer
from proxy.caller import OrganizationAccess
from proxy.calls.asking_request import AskingRequest
from proxy.calls.decide import may_use_vendor
from proxy.outcomes import Denial, Denied
from proxy.request_context import RequestContext


async def rights_now(context: RequestContext, request: AskingRequest) -> OrganizationAccess | Denied:
    """The organization's rows, or the rule that refuses the call now. Raises: as `CallerCache.revalidated`."""
    known = context.caller
    epochs = await context.runtime.store.read_epochs(known.epoch_names)
    try:
        caller = await context.caller_source.revalidated(context.bearer, known, epochs)
    except InvalidBearer as fault:
        text = f"The call ended while the vendor waited for an answer: {fault.reason}"
        return Denied(Denial.NO_SERVER_ACCESS, text, request.vendor.slug)
    usable = may_use_vendor(caller, request.vendor)
    if isinstance(usable, Denied):
        return usable
    if not _is_same(usable, request.credential):
        text = f"Other credentials for {request.vendor.name} apply now, so the call ended. Send it again."
        return Denied(Denial.NO_CREDENTIALS, text, request.vendor.slug)
    return request.refused(caller) or caller.organization


def _is_same(usable: CredentialRef, used: CredentialRef) -> bool:
    """A connection keeps its identity when its token is renewed."""
    return usable.id == used.id and (usable.is_connection or usable.revision == used.revision)
