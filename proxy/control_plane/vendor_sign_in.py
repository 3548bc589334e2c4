"""Sign-ins at vendors, from the button to the stored connection. Spec: contract §8"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from credentials.errors import (
    ClientNotRegistered,
    ConnectionNotOffered,
    UnusableCredential,
    VendorServerChanged,
    VendorSignInFailed,
)
from credentials.models import VendorConnection, VendorSignInRules
from credentials.selectors import connection_of, sign_in_rules, sign_in_rules_of
from credentials.services import vendor_sign_ins
from credentials.services.vendor_clients import client_for, known_client
from credentials.services.vendor_connections import (
    check_people_may_connect,
    store_organization_connection,
    store_own_connection,
)
from credentials.services.vendor_revocations import give_back
from credentials.services.vendor_sign_ins import Begun, Flow, flow_of
from credentials.vendor_asking import ASK, check_endpoint, redirect_uri
from credentials.vendor_oauth.answers import Refused, Tokens, VendorOAuthFault
from credentials.vendor_oauth.discovery import OFFLINE, check_not_of_others, discover
from credentials.vendor_oauth.requests import OAuthClient, account_of, authorization_url, exchange_code
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.catalog.registry import known_vendor
from gateway.catalog.vendor import OAuthSettings, Vendor
from gateway.lib import secrets
from gateway.lib.errors import DomainError
from gateway.lib.sentences import sentence
from orgs.models import Membership, Organization, User
from orgs.roles import Role
from proxy.control_plane.vendor_request_limiter import vendor_requests

ORGANIZATION, PERSON = "organization", "person"
_ROLES = {ORGANIZATION: Role.ADMIN, PERSON: Role.MEMBER}


@dataclass(frozen=True, slots=True)
class CallbackQuery:
    """The parameters with which the authorization server sends the browser back; "" for one that is missing."""

    state: str = ""
    code: str = ""
    issuer: str = ""
    error: str = ""
    # A parameter came twice.
    is_doubled: bool = False

    def __repr__(self) -> str:
        return "CallbackQuery(…)"


@dataclass(frozen=True, slots=True)
class SignedIn:
    connection: VendorConnection
    vendor: Vendor
    back: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A vendor that the person may connect for an organization. `connection`: the one there is."""

    organization: Organization
    vendor: Vendor
    connection: VendorConnection | None
    # That a sign-in asks for; empty: those that the vendor names.
    scopes: list[str]


def begin_sign_in(*, membership: Membership, vendor: Vendor, level: str, session_key: str, back: str = "") -> str:
    """The address of the vendor's sign-in. No transaction may be open.

    Raises: ConnectionNotOffered; ClientNotRegistered; VendorServerChanged; VendorSignInFailed; TooManyVendorRequests;
    UnusableCredential; NotFound, Forbidden.
    """
    oauth = _offered(vendor, level)
    rules = sign_in_rules(membership.organization_id, vendor.slug)
    if level == PERSON:
        check_people_may_connect(rules)
    verifier = secrets.random_url_safe()
    try:
        with vendor_requests.slot(membership.organization_id):
            found = discover(vendor.url, ask=ASK, check=check_endpoint, issuer=oauth.issuer, scopes=oauth.scopes)
            check_not_of_others(
                found.server, _addresses_of_others(membership.organization, vendor, found.server.issuer)
            )
            if rules.issuer and not oauth.issuer and found.server.issuer != rules.issuer:
                raise VendorServerChanged(rules.issuer, found.server.issuer)
            client = client_for(membership.organization, vendor, found.server)
    except VendorOAuthFault as fault:
        raise VendorSignInFailed(fault.reason) from None
    scopes = " ".join(asked_scopes(found.scopes, rules.scope_list, _more_scopes(membership, vendor, level)))
    state = vendor_sign_ins.begin(
        membership=membership,
        vendor=vendor.slug,
        level=level,
        session_key=session_key,
        back=back,
        flow=flow_of(found, client, verifier=verifier, scopes=scopes),
        role=_ROLES[level],
    )
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    return authorization_url(
        found,
        client.client_id,
        redirect_uri=redirect_uri(),
        state=state,
        code_challenge=challenge,
        scopes=scopes,
    )


def _addresses_of_others(organization: Organization, vendor: Vendor, issuer: str) -> list[str]:
    """Of the other vendors in the catalog: their servers, as the catalog and the organization know them."""
    others = [each for each in registry.load().all() if each.oauth is not None and each.slug != vendor.slug]
    known = [row.issuer for row in sign_in_rules_of([organization.pk]).values() if row.vendor != vendor.slug]
    found = [*known, *(each.url for each in others), *(each.oauth.issuer for each in others if each.oauth)]
    # Vendors may share a server.
    return [each for each in found if each and each != issuer]


def asked_scopes(named: Sequence[str], allowed: Sequence[str], more: Sequence[str] = ()) -> list[str]:
    """Those of the vendor, and `more`, that the organization's rules allow; without rules all, without names the
    rules' own."""
    found = list(dict.fromkeys([*named, *more]))
    if not allowed:
        return found
    return [each for each in found if each in allowed or each == OFFLINE] if found else list(allowed)


def _more_scopes(membership: Membership, vendor: Vendor, level: str) -> list[str]:
    """After a call that needed more scopes: those of the connection and the wanted ones."""
    held = connection_of(membership, vendor.slug, is_own=level == PERSON)
    return [*held.scope_list, *held.wanted_scope_list] if held and held.wanted_scope_list else []


def finish_sign_in(*, actor: User, session_key: str, query: CallbackQuery) -> SignedIn:
    """Take the sign-in, exchange the code and store the connection.

    Raises: VendorSignInGone; VendorSignInFailed; ConnectionNotOffered; VendorServerChanged; NotFound, Forbidden for a
    person who lost the right meanwhile; TooManyVendorRequests.
    """
    begun = vendor_sign_ins.take(actor=actor, session_key=session_key, state=query.state)
    vendor = known_vendor(begun.vendor)
    _offered(vendor, begun.level)
    client, tokens = _exchanged(begun, vendor, query)
    try:
        stored = _stored(begun, actor, vendor, tokens)
    except DomainError:
        # The vendor has granted what nobody here may use.
        give_back(vendor.slug, begun.flow.revocation_endpoint, client, tokens)
        raise
    return SignedIn(stored, vendor, begun.back)


def _stored(begun: Begun, actor: User, vendor: Vendor, tokens: Tokens) -> VendorConnection:
    flow = begun.flow
    account = account_of(
        tokens,
        issuer=flow.issuer,
        client_id=flow.client_id,
        userinfo_endpoint=flow.userinfo_endpoint,
        scopes=flow.scopes if tokens.scopes is None else tokens.scopes,
        ask=ASK,
    )
    if begun.level == PERSON:
        return store_own_connection(
            membership=begun.membership, vendor=vendor, flow=flow, tokens=tokens, account=account
        )
    organization = begun.membership.organization
    return store_organization_connection(
        actor=actor, organization=organization, vendor=vendor, flow=flow, tokens=tokens, account=account
    )


def _exchanged(begun: Begun, vendor: Vendor, query: CallbackQuery) -> tuple[OAuthClient, Tokens]:
    """Raises: VendorSignInFailed."""
    flow = begun.flow
    if query.is_doubled:
        raise VendorSignInFailed(sentence("The vendor’s authorization server sent a contradictory response."))
    _check_issuer(flow, query.issuer)
    if query.error:
        raise VendorSignInFailed(
            sentence("The sign-in was declined at the vendor.")
            if query.error == "access_denied"
            else sentence("The vendor’s authorization server reported an error.")
        )
    if not query.code or len(query.code) > 4_000:
        raise VendorSignInFailed(sentence("The vendor’s authorization server sent no code."))
    try:
        with vendor_requests.slot(begun.membership.organization_id):
            client = known_client(
                *(begun.membership.organization_id, vendor.slug, vendor.oauth),
                issuer=flow.issuer,
                client_id=flow.client_id,
                auth_method=flow.auth_method,
            )
            answer = exchange_code(
                flow.token_endpoint,
                client,
                code=query.code,
                verifier=flow.verifier,
                redirect_uri=redirect_uri(),
                resource=flow.resource,
                ask=ASK,
            )
    except VendorOAuthFault as fault:
        raise VendorSignInFailed(fault.reason) from None
    except UnusableCredential as fault:
        raise VendorSignInFailed(fault.message) from None
    if isinstance(answer, Refused):
        raise VendorSignInFailed(sentence("The authorization server refused the code: %(code)s.", code=answer.code))
    return client, answer


def _check_issuer(flow: Flow, issuer: str) -> None:
    """Mix-up of two servers: the answer must come from the one that the person was sent to. Spec: RFC 9207"""
    if issuer != flow.issuer if issuer else flow.names_issuer:
        raise VendorSignInFailed(sentence("The response came from a different authorization server."))


def _offered(vendor: Vendor, level: str) -> OAuthSettings:
    if vendor.oauth is None or level not in vendor.oauth.connections:
        raise ConnectionNotOffered
    if vendor.awaits_client:
        raise ClientNotRegistered
    return vendor.oauth


def sign_in_levels(membership: Membership, vendor: Vendor) -> tuple[str, ...]:
    """The levels at which the person may sign in to the vendor, their own one first."""
    if not vendor.sign_in_levels:
        return ()
    may_themselves = sign_in_rules(membership.organization_id, vendor.slug).people_may_connect
    allowed = {PERSON: may_themselves, ORGANIZATION: membership.has_role(_ROLES[ORGANIZATION])}
    return tuple(level for level, is_allowed in allowed.items() if is_allowed and level in vendor.sign_in_levels)


def offers_for(members: Iterable[Membership], held: Sequence[VendorConnection], catalog: Catalog) -> list[Offer]:
    """By organization and vendor. Those that are connected stay among them, also while no new sign-in is possible."""
    vendors = [each for each in catalog.all() if each.oauth is not None and PERSON in each.oauth.connections]
    known = {(row.organization_id, row.vendor): row for row in held}
    of_all = list(members)
    rules = sign_in_rules_of([member.organization_id for member in of_all])
    found = []
    for member in of_all:
        for vendor in sorted(vendors, key=lambda each: each.name.casefold()):
            key = member.organization_id, vendor.slug
            of_vendor = rules.get(key) or VendorSignInRules()
            if of_vendor.people_may_connect and (vendor.sign_in_levels or key in known):
                asked = shown_scopes(vendor, of_vendor, known.get(key))
                found.append(Offer(member.organization, vendor, known.get(key), asked))
    return found


def shown_scopes(vendor: Vendor, rules: VendorSignInRules, held: VendorConnection | None) -> list[str]:
    """The scopes that the next sign-in will ask for, as far as they are known before it; empty: the vendor's choice."""
    named = vendor.oauth.scopes if vendor.oauth is not None else ()
    more = [*held.scope_list, *held.wanted_scope_list] if held and held.wanted_scope_list else []
    return asked_scopes(named, rules.scope_list, more)
