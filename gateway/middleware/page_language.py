from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import translation

from gateway.lib.machine_paths import is_for_machines


class PageLanguageMiddleware(LocaleMiddleware):
    """Shows pages in the language of the person's cookie, else of their browser, else in English.

    Answers for machines stay English: clients compare them. `docs/decisions/0075`
    """

    def process_request(self, request: HttpRequest) -> None:
        if len(settings.LANGUAGES) > 1 and not is_for_machines(request.path_info):
            super().process_request(request)
            return
        translation.activate(settings.LANGUAGE_CODE)

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if (
            len(settings.LANGUAGES) > 1
            and isinstance(response, HttpResponse)
            and not is_for_machines(request.path_info)
        ):
            return super().process_response(request, response)
        return response
