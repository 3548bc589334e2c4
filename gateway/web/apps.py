from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "gateway.web"
    label = "web"
    verbose_name = "Pages and API"
