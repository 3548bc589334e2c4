"""Routes of the authorization server, from the root of the site. Spec: §4.2"""

from django.urls import path

from oauth_ext.views import authorize, device_authorization, metadata, register, revoke, token

app_name = "oauth_ext"
urlpatterns = [
    path("oauth/authorize", authorize.authorize, name="authorize"),
    path("oauth/device_authorization", device_authorization.device_authorization, name="device-authorization"),
    path("oauth/register", register.register, name="register"),
    path("oauth/revoke", revoke.revoke, name="revoke"),
    path("oauth/token", token.token, name="token"),
    path(".well-known/oauth-authorization-server", metadata.authorization_server, name="server-metadata"),
    path(".well-known/oauth-protected-resource", metadata.protected_resource, name="resource-metadata-root"),
    path(".well-known/oauth-protected-resource/v1/mcp", metadata.protected_resource, name="resource-metadata"),
    path(
        ".well-known/oauth-protected-resource/v1/<slug:vendor>/mcp",
        metadata.protected_vendor_resource,
        name="vendor-resource-metadata",
    ),
    path(".well-known/jwks.json", metadata.jwks, name="jwks"),
    path(".well-known/<path:rest>", metadata.unknown, name="well-known-unknown"),
]
