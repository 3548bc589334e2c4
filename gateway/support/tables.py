"""All tables of the database, as Django admin lists them: for superusers."""

from __future__ import annotations

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from gateway.support.page import SupportPage


class TablesPage(SupportPage):
    """GET /admin/tables/"""

    def get(self, request: HttpRequest) -> HttpResponse:
        if not self.staff.is_superuser:
            raise PermissionDenied
        return admin.site.index(request, {"title": "Tables"})
