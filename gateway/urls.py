"""The whole public surface on one page."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from gateway import liveness
from gateway.site import api_docs, pages
from orgs.pages.profile import ProfilePage

handler400 = "gateway.site.errors.bad_request"
handler403 = "gateway.site.errors.permission_denied"
handler404 = "gateway.site.errors.not_found"
handler500 = "gateway.site.errors.server_error"

urlpatterns = [
    path("", include("proxy.views.urls")),
    path("", include("oauth_ext.views.urls")),
    path("ready", liveness.ready, name="ready"),
    path("", pages.landing, name="landing"),
    path("signin", pages.signin, name="signin"),
    path("profile", ProfilePage.as_view(), name="profile"),
    path("", include("orgs.pages.urls")),
    path("", include("credentials.pages.urls")),
    path("", include("oauth_ext.pages.urls")),
    path("", include("audit.pages.urls")),
    path("", include("proxy.pages.urls")),
    path("api/schema", api_docs.schema, name="api-schema"),
    path("docs/api", api_docs.page, name="api-docs"),
    path("api/", include("proxy.api.urls")),
    path("api/", include("orgs.api.urls")),
    path("api/", include("billing.api.urls")),
    path("api/", include("credentials.api.urls")),
    path("api/", include("oauth_ext.api.urls")),
    path("oidc/", include("mozilla_django_oidc.urls")),
    path("admin/", admin.site.urls),
]
