"""The app that owns the outbox of epoch bumps."""

from django.apps import AppConfig


class CoordinationConfig(AppConfig):
    """Coordination of processes."""

    name = "gateway.coordination"
    label = "coordination"
    verbose_name = "Coordination"
