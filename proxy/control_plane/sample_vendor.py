"""Connects a vendor that the catalog offers with sample values, for people who have no credentials yet."""

from __future__ import annotations

from collections.abc import Collection

from credentials.selectors import connected_vendors
from gateway.catalog.catalog import Catalog
from gateway.catalog.vendor import Vendor
from gateway.lib import secrets
from gateway.lib.errors import NotFound
from orgs.models import Organization, User
from proxy.control_plane.connect_vendor import Connected, connect_vendor, load_tools

RANDOM_CHARACTERS = 24


def sample_vendor(catalog: Catalog, connected: Collection[str]) -> Vendor | None:
    """The first vendor by name that has a sample and is not connected."""
    return next((each for each in catalog.all() if each.sample is not None and each.slug not in connected), None)


def connect_sample(*, actor: User, organization: Organization, vendor: Vendor) -> Connected | None:
    """None if the vendor is connected already: a sample replaces no credential. Its tools are loaded if it lists them.

    Raises: NotFound for a vendor without a sample; as `connect_vendor`.
    """
    fields = vendor.sample_fields(secrets.random_base62(RANDOM_CHARACTERS))
    if fields is None:
        raise NotFound
    if vendor.slug in connected_vendors(organization):
        return None
    connected = connect_vendor(actor=actor, organization=organization, vendor=vendor, fields=fields)
    if connected.check.validated:
        load_tools(organization, vendor, connected.credential)
    return connected
