"""Loading catalog files into the database."""

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
    """The text of a catalog file and the name under which its faults are reported."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Slugs of the vendors a load has created, updated and found unchanged, sorted."""

    created: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A vendor and where in which file it stands."""

    vendor: Vendor
    file: CatalogFile
    number: int

    def prefix_taken(self, by: str) -> CatalogError:
        """Return the error that vendor `by` already owns this vendor's tool prefix."""
        message = f'"{self.vendor.tool_prefix}" is already the prefix of the vendor {by}'
        return self.file.error(self.number, "tool_prefix", message)


def load_catalog(text: str, source: str) -> LoadResult:
    """Make the vendors of one catalog file part of the catalog; vendors it does not name stay as they are.

    Loading the same file again changes nothing. Only tests call it: commands load all their files at once.
    Raises: CatalogErrors: all faults of the file; nothing was changed.   Spec: contract §4
    """
    return load_catalogs([CatalogText(text=text, source=source)])


def load_catalogs(files: Sequence[CatalogText]) -> LoadResult:
    """Make the vendors of several files part of the catalog in one transaction; a later file overrides an earlier one.

    One load, and not one per file: an operator's file that overrides a shipped vendor would otherwise flip that
    vendor twice at every start.
    Raises: CatalogErrors: the faults of all files; nothing was changed.   Spec: contract §4
    """
    entries = merge_catalogs(files)
    try:
        return _store(entries)
    except IntegrityError:  # another process took a prefix at the same moment; now its rows can be seen
        return _store(entries)


def merge_catalogs(files: Sequence[CatalogText]) -> dict[str, CatalogEntry]:
    """Return the vendors of all files by slug, without touching the database.

    Raises: CatalogErrors: the faults of all files.
    """
    errors: list[CatalogError] = []
    entries: dict[str, CatalogEntry] = {}
    for each in files:
        try:
            file = read_catalog(each.text, each.source)
        except CatalogErrors as found:
            errors.extend(found.errors)
            continue
        for number, vendor in enumerate(file.vendors):
            entries.pop(vendor.slug, None)  # an override stands where it was written, so that faults name its file
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
        # Two vendors may swap their prefixes, and the unique index is not deferred: those rows are written anew.
        moved = [slug for slug in updated if fresh[slug].tool_prefix != rows[slug].tool_prefix]
        VendorRow.objects.filter(slug__in=moved).delete()
        VendorRow.objects.bulk_create(
            [fresh[slug] for slug in sorted((*created, *updated))],  # one order for all, or two loads lock crosswise
            update_conflicts=True,  # another process may have written the same vendors since we looked
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
