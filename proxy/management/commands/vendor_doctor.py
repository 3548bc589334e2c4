"""`manage.py vendor_doctor`: diagnose one vendor step by step. Credential values are never printed."""

from __future__ import annotations

import asyncio
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from credentials.connection_refresh import renewed_now
from credentials.errors import ConnectionEnded, UnusableCredential
from credentials.resolve import resolve
from credentials.sealing import wrapped_keys
from credentials.selectors import refs_by_vendor
from gateway.catalog import registry
from gateway.catalog.templates import FieldError
from gateway.catalog.vendor import Vendor
from gateway.coordination import backend
from gateway.coordination.store import CoordinationUnavailable
from gateway.lib import ids
from orgs import selectors
from proxy.calls.open_destination import open_destination
from proxy.control_plane.doctor import OpenedCredential, diagnose
from proxy.control_plane.doctor_sign_in import sign_in_findings
from proxy.vendors.era_verdicts import Verdict, stored_verdicts


class Command(BaseCommand):
    help = (
        "Tries one vendor, with an organization's credentials where --org names one; exit code 1 if something is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--org", default="", help="id of the organization whose default credentials are used")

    def handle(self, *, slug: str, org: str, **options: object) -> None:
        vendor = registry.vendor_or_none(slug)
        if vendor is None:
            raise CommandError(f"There is no vendor {slug} in the catalog.")
        opened = _opened(vendor, org) if org else None
        findings = [*sign_in_findings(vendor), *asyncio.run(diagnose(vendor, opened))]
        width = max(len(finding.what) for finding in findings)
        for finding in findings:
            self.stdout.write(f"{'!' if finding.is_trouble else ' '} {finding.what:<{width}}  {finding.found}")
        troubles = sum(finding.is_trouble for finding in findings)
        if troubles:
            raise CommandError(f"{troubles} of {len(findings)} findings are problems.", returncode=1)


def _opened(vendor: Vendor, org: str) -> OpenedCredential:
    """Raises: CommandError."""
    org_id = ids.parse_id(org)
    organization = None if org_id is None else selectors.organization(org_id)
    if organization is None:
        raise CommandError(f"There is no organization {org}.")
    candidates = refs_by_vendor(organization.id).get(vendor.slug, ())
    ref = resolve(candidates, service_client_id=None, team_ids=())
    if ref is None:
        raise CommandError(f"{organization.name} has no default credentials for {vendor.name}.")
    try:
        ref = renewed_now(ref)
        url, headers = open_destination(ref, vendor, wrapped_keys(organization.id), organization.id).open()
        return OpenedCredential(url, headers, _verdict(vendor, ref.id))
    except ConnectionEnded as fault:
        raise CommandError(f"{organization.name}: {fault.message}") from fault
    except (UnusableCredential, FieldError) as fault:
        raise CommandError(f"The stored credentials of {vendor.name} cannot be used: {fault}") from fault


def _verdict(vendor: Vendor, credential_id: UUID) -> Verdict | None:
    """The revision that calls use; None if it is not known, or the store is away."""
    try:
        return stored_verdicts(backend.current(), [(vendor.slug, credential_id)]).get(credential_id)
    except CoordinationUnavailable:
        return None
