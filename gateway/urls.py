"""All public URLs."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from gateway.site import api_docs, pages
from gateway.web.rate import all_backstopped, backstopped, starting_sign_in
from orgs.pages.profile import ProfilePage
from orgs.signin.views import AuthenticateView, BackchannelLogoutView, CallbackView, SignOutView, StaffSignInView

handler400 = "gateway.site.errors.bad_request"
handler403 = "gateway.site.errors.permission_denied"
handler404 = "gateway.site.errors.not_found"
handler500 = "gateway.site.errors.server_error"

# mozilla_django_oidc looks these names up. Callers are anonymous here, so their address is counted.
_SIGN_IN = [
    path("authenticate/", backstopped(starting_sign_in(AuthenticateView.as_view())), name="oidc_authentication_init"),
    path("callback/", backstopped(CallbackView.as_view()), name="oidc_authentication_callback"),
    path("logout/", backstopped(SignOutView.as_view()), name="oidc_logout"),
    path("backchannel-logout/", backstopped(BackchannelLogoutView.as_view()), name="oidc_backchannel_logout"),
]
urlpatterns = [
    path("", include("proxy.views.urls")),
    path("", include("oauth_ext.views.urls")),
    path("", backstopped(pages.landing), name="landing"),
    path("signin", backstopped(pages.signin), name="signin"),
    path("profile", backstopped(ProfilePage.as_view()), name="profile"),
    path("", include("orgs.pages.urls")),
    path("", include("credentials.pages.urls")),
    path("", include("oauth_ext.pages.urls")),
    path("", include("audit.pages.urls")),
    path("", include("proxy.pages.urls")),
    path("api/schema", backstopped(api_docs.schema), name="api-schema"),
    path("docs/api", backstopped(api_docs.page), name="api-docs"),
    path("docs/migrate", backstopped(pages.migrate), name="migrate"),
    path("api/", include("proxy.api.urls")),
    path("api/", include("orgs.api.urls")),
    path("api/", include("billing.api.urls")),
    path("api/", include("credentials.api.urls")),
    path("api/", include("oauth_ext.api.urls")),
    path("oidc/", include(_SIGN_IN)),
    path("admin/login/", backstopped(StaffSignInView.as_view()), name="staff-signin"),
    path("admin/", (all_backstopped(admin.site.urls[0]), *admin.site.urls[1:])),
]
