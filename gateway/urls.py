"""All public URLs."""

from django.contrib import admin
from django.urls import include, path
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from credentials.pages.own_connections import OwnConnectionsPage
from credentials.pages.vendor_callback import VendorCallbackPage, client_document
from gateway.mail.opt_outs import UNSUBSCRIBE_PATH
from gateway.site import api_docs, help_pages, pages
from gateway.site.unsubscribe import UnsubscribePage
from gateway.support.search import SearchPage
from gateway.support.tables import TablesPage
from gateway.web.page_limit import all_page_limited, page_limited, starting_sign_in
from orgs.pages.management_tokens import NewTokenPage, RevokeTokenPage
from orgs.pages.profile import EndSessionsPage, MailChoicesPage, ProfilePage
from orgs.signin.views import AuthenticateView, BackchannelLogoutView, CallbackView, SignOutView, StaffSignInView

handler400 = "gateway.site.errors.bad_request"
handler403 = "gateway.site.errors.permission_denied"
handler404 = "gateway.site.errors.not_found"
handler500 = "gateway.site.errors.server_error"

# mozilla_django_oidc looks these names up. Callers are anonymous here, so their address is counted.
_SIGN_IN = [
    path("authenticate/", page_limited(starting_sign_in(AuthenticateView.as_view())), name="oidc_authentication_init"),
    path("callback/", page_limited(CallbackView.as_view()), name="oidc_authentication_callback"),
    path("logout/", page_limited(SignOutView.as_view()), name="oidc_logout"),
    path("backchannel-logout/", page_limited(BackchannelLogoutView.as_view()), name="oidc_backchannel_logout"),
]
urlpatterns = [
    path("", include("proxy.views.urls")),
    path("", include("oauth_ext.views.urls")),
    path("", page_limited(pages.landing), name="landing"),
    path("signin", page_limited(pages.signin), name="signin"),
    path("language", page_limited(require_POST(set_language)), name="language"),
    path("setup", page_limited(pages.setup), name="setup"),
    path("profile", page_limited(ProfilePage.as_view()), name="profile"),
    path("profile/connections", page_limited(OwnConnectionsPage.as_view()), name="own-connections"),
    path("vendor-oauth/callback", page_limited(VendorCallbackPage.as_view()), name="vendor-oauth-callback"),
    path("vendor-oauth/client.json", page_limited(client_document), name="vendor-oauth-client"),
    path("profile/mail", page_limited(MailChoicesPage.as_view()), name="mail-choices"),
    path("profile/sessions", page_limited(EndSessionsPage.as_view()), name="end-sessions"),
    path("profile/tokens/new", page_limited(NewTokenPage.as_view()), name="token-new"),
    path("profile/tokens/<uuid:token_id>/revoke", page_limited(RevokeTokenPage.as_view()), name="token-revoke"),
    path(f"{UNSUBSCRIBE_PATH}<str:token>", page_limited(UnsubscribePage.as_view()), name="mail-unsubscribe"),
    path("", include("orgs.pages.urls")),
    path("", include("credentials.pages.urls")),
    path("", include("oauth_ext.pages.urls")),
    path("", include("audit.pages.urls")),
    path("", include("billing.pages.urls")),
    path("", include("proxy.pages.urls")),
    path("", include("gateway.site.moved")),
    path("api/schema", page_limited(api_docs.schema), name="api-schema"),
    path("docs", page_limited(help_pages.overview), name="docs"),
    path("docs/search", page_limited(help_pages.search), name="docs-search"),
    path("docs/api", page_limited(api_docs.page), name="api-docs"),
    path("docs/api/<slug:operation>/try", page_limited(api_docs.try_page), name="api-try"),
    path("docs/migrate", page_limited(pages.migrate), name="migrate"),
    path("docs/<path:document>", page_limited(help_pages.document), name="docs-document"),
    path("api/", include("proxy.api.urls")),
    path("api/", include("audit.api.urls")),
    path("api/", include("orgs.api.urls")),
    path("api/", include("billing.api.urls")),
    path("api/", include("credentials.api.urls")),
    path("api/", include("oauth_ext.api.urls")),
    path("api/", include("audit.api.dashboard_urls")),
    path("oidc/", include(_SIGN_IN)),
    path("admin/login/", page_limited(StaffSignInView.as_view()), name="staff-signin"),
    path("admin/", page_limited(SearchPage.as_view()), name="support-search"),
    path("admin/tables/", page_limited(TablesPage.as_view()), name="support-tables"),
    path("admin/support/", include("gateway.support.urls")),
    path("admin/", (all_page_limited(admin.site.urls[0]), *admin.site.urls[1:])),
]
