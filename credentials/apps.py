from django.apps import AppConfig


class CredentialsConfig(AppConfig):
    name = "credentials"
    verbose_name = "Credentials"

    def ready(self) -> None:
        # Importing the module connects its signal receivers.
        from credentials import receivers  # noqa: F401
