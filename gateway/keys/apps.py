from django.apps import AppConfig


class KeysConfig(AppConfig):
    name = "gateway.keys"
    label = "keys"
    verbose_name = "Keys"
