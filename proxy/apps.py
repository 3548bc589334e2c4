"""The app of the hot path. It owns no tables."""

from django.apps import AppConfig


class ProxyConfig(AppConfig):
    """Proxy."""

    name = "proxy"
    verbose_name = "Proxy"
