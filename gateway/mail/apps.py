from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class MailConfig(AppConfig):
    name = "gateway.mail"
    label = "mail"
    verbose_name = "E-mail"

    def ready(self) -> None:
        # The kinds of messages of each app.
        autodiscover_modules("mail_kinds")
