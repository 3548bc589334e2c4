"""dj-stripe as an app of this service: a part of its models, and none of its checks, handlers and admin pages."""

from __future__ import annotations

import sys
from types import ModuleType

from django.apps import AppConfig


class MirrorConfig(AppConfig):
    """Stands in INSTALLED_APPS in the place of the library's own AppConfig."""

    name = "djstripe"
    verbose_name = "Payment provider (copies)"
    default_auto_field = "django.db.models.AutoField"

    def import_models(self) -> None:
        from billing.mirror import library

        # The admin imports this module of each app. The library's has 60 pages that write and call out.
        sys.modules[f"{self.name}.admin"] = ModuleType(f"{self.name}.admin")
        # The models take the name of the key as a default when they are defined.
        library.prepare()
        super().import_models()
        library.reduce(self.models)

    def ready(self) -> None:
        from billing.mirror import contents

        # Its system checks query tables at each start, and its handlers belong to its own webhook view.
        contents.guard(self.get_models())
