"""The vendor catalog as a Django app."""

from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "gateway.catalog"
    label = "catalog"
    verbose_name = "Vendor catalog"
