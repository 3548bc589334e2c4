from django.apps import AppConfig


class StatusConfig(AppConfig):
    name = "gateway.status"
    label = "status"
    verbose_name = "Status page"
