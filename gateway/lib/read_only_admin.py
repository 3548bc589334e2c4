from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin  # generic for the type checker only


class ReadOnlyAdmin(ModelAdmin):
    """The admin base class: superusers look and search, services change rows. Other staff have the support console."""

    actions = None
    list_per_page = 50
    show_full_result_count = False  # saves a count of the whole table

    def has_module_permission(self, request: HttpRequest) -> bool:
        return _is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return _is_superuser(request)

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


def _is_superuser(request: HttpRequest) -> bool:
    # The flag alone: a permission that a group gives opens no table.
    return bool(request.user.is_active and getattr(request.user, "is_superuser", False))
