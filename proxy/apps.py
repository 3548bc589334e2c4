"""The app of the hot path. It owns no tables."""

from django.apps import AppConfig


class ProxyConfig(AppConfig):
    name = "proxy"
    verbose_name = "Proxy"
