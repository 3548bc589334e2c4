from django.apps import AppConfig


class CoordinationConfig(AppConfig):
    name = "gateway.coordination"
    label = "coordination"
    verbose_name = "Coordination"
