"""`manage.py load_vendors`: load catalog files, or only check them. Spec: contract §4"""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.catalog.parsing import CatalogErrors, decode_catalog
from gateway.catalog.services import CatalogText, load_catalogs, merge_catalogs
from gateway.catalog.shipped import shipped_files


class Command(BaseCommand):
    help = (
        "Load the vendors of a catalog FILE. Without FILE: all shipped ones, then the file that VENDOR_CATALOG names, "
        "which may override them. A bad file changes nothing."
    )

    # The command runs at every start and on operators' own files, where the site-wide checks would only cost time.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", default="", metavar="FILE", help="a catalog file (TOML)")
        parser.add_argument("--check", action="store_true", help="only say whether the files are good")

    def handle(self, *, file: str, check: bool, **options: object) -> None:
        texts = [_read(path, source) for path, source in _files(file)]
        try:
            if check:
                entries = merge_catalogs(texts).values()
                # A check reads only the files, so it works without a database.
                self.stdout.write(f"good: {len(entries)}")
                self._warn(Catalog(entry.vendor for entry in entries), {entry.vendor.slug for entry in entries})
                return
            result = load_catalogs(texts)
        except CatalogErrors as errors:
            raise CommandError(str(errors)) from None
        self._print("created", result.created)
        self._print("updated", result.updated)
        self._print("unchanged", result.unchanged)
        self._warn(registry.load(), {*result.created, *result.updated})

    def _warn(self, catalog: Catalog, slugs: Set[str]) -> None:
        """Report overlapping prefixes: a tool name belongs to the vendor with the longest one. Spec: D164"""
        for vendor, other in catalog.overlaps():
            if slugs.isdisjoint({vendor.slug, other.slug}):
                continue
            self.stderr.write(
                f"warning: the prefix {other.tool_prefix} ({other.slug}) begins with {vendor.tool_prefix}_"
                f" ({vendor.slug}): no tool of {vendor.slug} is listed or called as {other.tool_prefix}_…"
            )

    def _print(self, what: str, slugs: tuple[str, ...]) -> None:
        self.stdout.write(f"{what}: {len(slugs)}" + (f" ({', '.join(slugs)})" if slugs and what != "unchanged" else ""))


def _read(path: Path, source: str) -> CatalogText:
    try:
        return CatalogText(text=decode_catalog(path.read_bytes(), source), source=source)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    except CatalogErrors as errors:
        raise CommandError(str(errors)) from None


def _files(file: str) -> list[tuple[Path, str]]:
    if file:
        return [(Path(file), file)]
    files = [(path, path.name) for path in shipped_files()]
    if settings.VENDOR_CATALOG:
        files.append((Path(settings.VENDOR_CATALOG), settings.VENDOR_CATALOG))
    return files
