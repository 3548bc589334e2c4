"""GET /oauth/authorize. Spec: §4.2 · D118, D119, D143, D163 · protocol.md B.4"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext

from gateway.lib.client_address import address_key
from gateway.lib.translated import translated
from gateway.site.errors import error_response
from gateway.web import rate
from gateway.web.signed_in import signed_in
from oauth_ext import cimd_documents, person_pages, redirect_uris
from oauth_ext.authorize_request import AuthorizePageError, AuthorizeRedirectError, AuthorizeRequest, read_request
from oauth_ext.models import Client
from oauth_ext.selectors import public_client
from oauth_ext.services.cimd_clients import DocumentUnusable, cimd_client
from oauth_ext.services.consent import RequestGone, allow_as_remembered, open_request
from orgs.models import User
from orgs.selectors import memberships

AFTER_SIGN_IN = "after_sign_in"


def authorize(request: HttpRequest) -> HttpResponse:
    """Raises: RateLimited, for the person or else for the address. Spec: D22"""
    if request.method not in {"GET", "HEAD"}:
        response = error_response(request, 405, message="Use GET.")
        response["Allow"] = "GET, HEAD"
        return response
    rate.count(request, settings.BACKSTOP)  # before any look-up
    try:
        wanted = read_request(request.META.get("QUERY_STRING", ""), lambda client_id: _client(request, client_id))
    except (AuthorizePageError, DocumentUnusable) as fault:
        return person_pages.error_page(
            request, 400, fault.reason if isinstance(fault, AuthorizePageError) else fault.message
        )
    except AuthorizeRedirectError as fault:
        return _error_for_client(request, fault)
    # Stores nothing before sign-in: some clients request this address themselves before they open a browser.
    if request.method == "HEAD" or not request.user.is_authenticated:
        if wanted.never_ask:
            return _interaction_required(request, wanted)
        return redirect(f"{reverse('oidc_authentication_init')}?{urlencode({'next': _after_sign_in(request)})}")
    return _ask_for_consent(request, signed_in(request), wanted)


def _error_for_client(request: HttpRequest, fault: AuthorizeRedirectError) -> HttpResponse:
    """Spec: D163 · RFC 9700 4.11.2"""
    # A stranger may have registered the address, and a link with our host name must not redirect there.
    if fault.client.registered_itself and not request.user.is_authenticated:
        host = redirect_uris.shown_host(fault.redirect_uri)
        return person_pages.error_page(
            request,
            400,
            gettext("The app at %(host)s sent an invalid request. %(fault)s")
            % {"host": host, "fault": translated(fault.description)},
        )
    return person_pages.back_to_client(fault.location)


def _interaction_required(request: HttpRequest, wanted: AuthorizeRequest) -> HttpResponse:
    described = "The person must respond on a page, which prompt=none does not allow."
    # One error for every missing step: sign-in, a choice of organization, or consent.
    error = AuthorizeRedirectError(wanted.client, wanted.redirect_uri, wanted.state, "interaction_required", described)
    return _error_for_client(request, error)


def _after_sign_in(request: HttpRequest) -> str:
    marked = "" if AFTER_SIGN_IN in request.GET else f"&{urlencode({AFTER_SIGN_IN: '1'})}"
    return f"{request.get_full_path()}{marked}"


def _client(request: HttpRequest, client_id: str) -> Client | None:
    if not cimd_documents.is_document_address(client_id):
        return public_client(client_id)
    if not settings.CIMD_ENABLED:  # a client stored earlier would never be refreshed
        return None
    return cimd_client(client_id=client_id, address=address_key(rate.address_of(request)))


def _ask_for_consent(request: HttpRequest, user: User, wanted: AuthorizeRequest) -> HttpResponse:
    # A person with several organizations always sees the page: only there can the person choose another one. So does a
    # person who comes from the sign-in: some browsers apply the `form-action` of the provider's form to every later
    # redirect, and it does not list the app's address. The page ends that chain.
    belongs = list(memberships(user)[:2])
    if len(belongs) == 1 and AFTER_SIGN_IN not in request.GET:
        location = allow_as_remembered(membership=belongs[0], wanted=wanted)
        if location is not None:
            return person_pages.back_to_client(location)
    if wanted.never_ask:
        return _interaction_required(request, wanted)
    try:
        waiting = open_request(actor=user, session_key=request.session.session_key or "", wanted=wanted)
    except RequestGone as gone:
        return person_pages.error_page(request, 400, translated(gone.message))
    return redirect(f"{reverse('oauth_pages:consent')}?{urlencode({'request': str(waiting.pk)})}")
