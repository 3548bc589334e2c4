"""The loaded catalog: one row per vendor, written only by loading a catalog file."""

from django.db import models

from gateway.catalog.vendor import SLUG_MAX_CHARACTERS


class VendorRow(models.Model):
    """One vendor. Other tables reference it by slug, without a foreign key. Spec: contract §4"""

    slug = models.CharField(primary_key=True, max_length=SLUG_MAX_CHARACTERS)
    # A column, so that a unique index decides which vendor owns a prefix when two processes load at once.
    tool_prefix = models.CharField(max_length=SLUG_MAX_CHARACTERS, unique=True)
    definition = models.JSONField()
    # The catalog file's name.
    source = models.CharField(max_length=200)
    # SHA-256 of the canonical JSON of `definition`: a changed digest means a changed vendor.
    digest = models.CharField(max_length=64)
    loaded_at = models.DateTimeField()

    class Meta:
        ordering = ["slug"]
        verbose_name = "vendor"

    def __str__(self) -> str:
        return self.slug
