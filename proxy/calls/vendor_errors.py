"""A vendor's JSON-RPC error as its caller may have it. docs/decisions/0118"""

from __future__ import annotations

from gateway.catalog.vendor import Vendor
from proxy.calls.decide import allowed_questions
from proxy.outcomes import VendorError
from proxy.protocol import questions, url_elicitation
from proxy.protocol.modern import elicitation
from proxy.protocol.replies import RpcError
from proxy.request_context import RequestContext


def for_caller(context: RequestContext, vendor: Vendor, error: RpcError) -> VendorError:
    """The error that asks for pages to be opened is a question: it passes where the vendor may ask and the client can
    open them, and another error takes its place elsewhere."""
    if error.code != url_elicitation.REQUIRED:
        return VendorError(error.raw_error, error.message)
    declared = {} if context.session is None else context.session.capabilities
    allowed = questions.allowed(declared, allowed_questions(context.caller.organization, vendor))
    shown = url_elicitation.checked(error.raw_error) if elicitation.can_open_pages(allowed) else None
    return VendorError(shown or url_elicitation.refused(error.message), error.message)
