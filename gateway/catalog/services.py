"""Loads catalog files into the database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils import timezone

from gateway.catalog.models import VendorRow
from gateway.catalog.parsing import CatalogError, CatalogErrors, CatalogFile, read_catalog
from gateway.catalog.vendor import Vendor, vendor_to_json
from gateway.coordination import epochs


@dataclass(frozen=True, slots=True)
class CatalogText:
    """A catalog file's text, and the name used in its error messages."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class LoadResult:
    # Sorted slugs.
    created: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    vendor: Vendor
    file: CatalogFile
    number: int

    def prefix_taken(self, by: str) -> CatalogError:
        """The error that vendor `by` already owns this vendor's tool prefix."""
        message = f'"{self.vendor.tool_prefix}" is already the prefix of the vendor {by}'
        return self.file.errors([(("vendor", self.number, "tool_prefix"), message)])[0]


def load_catalogs(files: Sequence[CatalogText]) -> LoadResult:
    """Load several files in one transaction; later files override earlier ones.

    Loading the same files again changes nothing, and vendors that no file names stay.
    Raises: CatalogErrors with the faults of all files; nothing changed.   Spec: contract §4
    """
    # One load for all files: with one load per file, an operator's override of a shipped vendor would be reverted and
    # applied again at every start.
    entries = merge_catalogs(files)
    try:
        return _store(entries)
    except IntegrityError:  # another process took a prefix at the same moment; now its rows can be seen
        return _store(entries)


def merge_catalogs(files: Sequence[CatalogText]) -> dict[str, CatalogEntry]:
    """The vendors of all files by slug, without the database. Raises: CatalogErrors with all faults."""
    errors: list[CatalogError] = []
    entries: dict[str, CatalogEntry] = {}
    for each in files:
        try:
            file = read_catalog(each.text, each.source)
        except CatalogErrors as found:
            errors.extend(found.errors)
            continue
        for number, vendor in enumerate(file.vendors):
            entries.pop(vendor.slug, None)  # an override reports faults at its own file and line
            entries[vendor.slug] = CatalogEntry(vendor=vendor, file=file, number=number)
    owners: dict[str, str] = {}
    for entry in entries.values():
        owner = owners.setdefault(entry.vendor.tool_prefix, entry.vendor.slug)
        if owner != entry.vendor.slug:
            errors.append(entry.prefix_taken(owner))
    if errors:
        raise CatalogErrors(errors)
    return entries


@transaction.atomic
def _store(entries: dict[str, CatalogEntry]) -> LoadResult:
    rows = {row.slug: row for row in VendorRow.objects.select_for_update()}
    kept = {row.tool_prefix: slug for slug, row in rows.items() if slug not in entries}
    taken = [
        entry.prefix_taken(kept[prefix]) for entry in entries.values() if (prefix := entry.vendor.tool_prefix) in kept
    ]
    if taken:
        raise CatalogErrors(taken)
    fresh = {slug: _row(entry) for slug, entry in entries.items()}
    created = sorted(fresh.keys() - rows.keys())
    updated = sorted(slug for slug in fresh.keys() & rows.keys() if fresh[slug].digest != rows[slug].digest)
    if created or updated:
        # Two vendors may swap prefixes, and the unique index is not deferrable: delete those rows and insert them
        # again.
        moved = [slug for slug in updated if fresh[slug].tool_prefix != rows[slug].tool_prefix]
        VendorRow.objects.filter(slug__in=moved).delete()
        VendorRow.objects.bulk_create(
            [fresh[slug] for slug in sorted((*created, *updated))],  # one lock order for all loads prevents deadlocks
            update_conflicts=True,  # another process may have inserted the same vendors since the SELECT
            unique_fields=["slug"],
            update_fields=["tool_prefix", "definition", "source", "digest", "loaded_at"],
        )
        epochs.bump_on_commit(epochs.CATALOG)
    return LoadResult(
        created=tuple(created),
        updated=tuple(updated),
        unchanged=tuple(sorted(fresh.keys() - set(created) - set(updated))),
    )


def _row(entry: CatalogEntry) -> VendorRow:
    definition = vendor_to_json(entry.vendor)
    canonical = json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return VendorRow(
        slug=entry.vendor.slug,
        tool_prefix=entry.vendor.tool_prefix,
        definition=definition,
        source=entry.file.source[:200],
        digest=hashlib.sha256(canonical.encode()).hexdigest(),
        loaded_at=timezone.now(),
    )
