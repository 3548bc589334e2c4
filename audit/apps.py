"""The app that owns the audit logs."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Audit."""

    name = "audit"
    verbose_name = "Audit"
