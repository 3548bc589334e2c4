"""The catalog as it is in force: one row per vendor, written only by loading a catalog file."""

from django.db import models

from gateway.catalog.vendor import SLUG_MAX_CHARACTERS


class VendorRow(models.Model):
    """One vendor of the catalog. Other tables name a vendor by its slug, without a foreign key. Spec: contract §4"""

    slug = models.CharField(primary_key=True, max_length=SLUG_MAX_CHARACTERS)
    # A column of its own so that the database settles who owns a prefix when two processes load at the same time.
    tool_prefix = models.CharField(max_length=SLUG_MAX_CHARACTERS, unique=True)
    definition = models.JSONField()
    source = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    loaded_at = models.DateTimeField()

    class Meta:
        ordering = ["slug"]
        verbose_name = "vendor"

    def __str__(self) -> str:
        return self.slug
