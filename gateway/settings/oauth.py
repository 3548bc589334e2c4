"""OpenID Connect sign-in of people (the gateway is a client) and OAuth tokens for agents (it is the server)."""

from gateway.lib.sentences import sentence
from gateway.settings import env
from gateway.settings.limits import ACCESS_TOKEN_LIFETIME_S, AUTHORIZATION_CODE_LIFETIME_S
from gateway.settings.security import BASE_URL, HTTPS
from oauth_ext.jwt.key_material import parse_setting

# --- signing in through the identity provider -------------------------------------------------------------------
AUTHENTICATION_BACKENDS = ["orgs.signin.backend.IdentityBackend"]
LOGIN_URL = "/signin"
LOGIN_REDIRECT_URL = "/"
LOGIN_REDIRECT_URL_FAILURE = "/signin?failed=1"
LOGOUT_REDIRECT_URL = "/"
OIDC_OP_DISCOVERY_URL = env.text("OIDC_OP_DISCOVERY_URL")
OIDC_PROVIDER_NAME = env.text("OIDC_PROVIDER_NAME", sentence("your identity provider"))
OIDC_RP_CLIENT_ID = env.text("OIDC_RP_CLIENT_ID")
OIDC_RP_CLIENT_SECRET = env.text("OIDC_RP_CLIENT_SECRET")
if not env.EMBEDDED and not env.HELPER:
    for _name in ("OIDC_OP_DISCOVERY_URL", "OIDC_RP_CLIENT_ID", "OIDC_RP_CLIENT_SECRET"):
        if not env.text(_name):
            env.refuse(_name, "must be set: people sign in through your identity provider.")
    if not OIDC_OP_DISCOVERY_URL.startswith("https://"):
        env.refuse("OIDC_OP_DISCOVERY_URL", "must begin with https:// in production.")
OIDC_RP_SCOPES = "openid email profile"
OIDC_RP_SIGN_ALGO = env.text("OIDC_RP_SIGN_ALGO", "RS256")
if OIDC_RP_SIGN_ALGO not in {"RS256", "RS384", "RS512", "ES256", "ES384", "PS256"}:
    env.refuse("OIDC_RP_SIGN_ALGO", "must be an asymmetric algorithm such as RS256 or ES256.")
# For a provider without email_verified that owns all its addresses. A claim that it sends still counts.
OIDC_EMAILS_ARE_VERIFIED = env.flag("OIDC_EMAILS_ARE_VERIFIED", default=False)
# offline_access: a refresh token lets the gateway ask the provider without a browser. auto: if the provider offers it.
OIDC_OFFLINE_ACCESS = env.text("OIDC_OFFLINE_ACCESS", "auto")
if OIDC_OFFLINE_ACCESS not in {"auto", "on", "off"}:
    env.refuse("OIDC_OFFLINE_ACCESS", "must be auto, on or off.")
# Without offline access: days until a person must sign in again before their clients get new tokens.
OIDC_WORD_DAYS = env.integer("OIDC_WORD_DAYS", 30, low=1, high=180)
# Sign-out also ends the session at the provider's end_session_endpoint.
OIDC_END_SESSION = env.flag("OIDC_END_SESSION", default=True)
OIDC_STORE_ID_TOKEN = OIDC_END_SESSION  # kept in the session as id_token_hint for the provider
OIDC_USE_PKCE = True
OIDC_TIMEOUT = 5

# --- giving out tokens --------------------------------------------------------------------------------------------
OAUTH2_PROVIDER_APPLICATION_MODEL = "oauth_ext.Client"
OAUTH2_PROVIDER_GRANT_MODEL = "oauth_ext.Grant"
OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL = "oauth_ext.AccessToken"  # noqa: S105
OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL = "oauth_ext.RefreshToken"  # noqa: S105
OAUTH2_PROVIDER_ID_TOKEN_MODEL = "oauth_ext.IDToken"  # noqa: S105
OAUTH2_PROVIDER_DEVICE_GRANT_MODEL = "oauth_ext.DeviceGrant"
TOKEN_SIGNING_KEYS = env.text("TOKEN_SIGNING_KEYS")
if TOKEN_SIGNING_KEYS:
    try:
        parse_setting(TOKEN_SIGNING_KEYS)
    except ValueError as _fault:
        env.refuse("TOKEN_SIGNING_KEYS", f"cannot be read: {_fault}.")
# Client ID metadata documents: clients identified by an https URL. On by default where the gateway itself uses https.
CIMD_ENABLED = env.flag("CIMD_ENABLED", default=HTTPS)
DEVICE_APPROVER_ROLE = env.text("DEVICE_APPROVER_ROLE", "member")
if DEVICE_APPROVER_ROLE not in {"member", "admin"}:
    env.refuse("DEVICE_APPROVER_ROLE", "must be member or admin.")
# W008: loopback redirect URIs of native clients use plain http (RFC 8252 §7.3). W004: an e-mail address is contact
# data, not unique, and no login name.
SILENCED_SYSTEM_CHECKS = ["oauth2_provider.W008", "auth.W004"]
OAUTH2_PROVIDER = {
    "OAUTH2_VALIDATOR_CLASS": "oauth_ext.validator.Validator",
    "ACCESS_TOKEN_GENERATOR": "oauth_ext.jwt.mint.access_token",
    # Set explicitly: the default is the access token generator.
    "REFRESH_TOKEN_GENERATOR": "oauth_ext.jwt.mint.refresh_token",
    "SCOPES_BACKEND_CLASS": "oauth_ext.scopes_backend.VendorScopes",
    "CLIENT_SECRET_HASHER": "client_sha256",
    "ACCESS_TOKEN_EXPIRE_SECONDS": ACCESS_TOKEN_LIFETIME_S,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "REFRESH_TOKEN_GRACE_PERIOD_SECONDS": 0,
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": AUTHORIZATION_CODE_LIFETIME_S,
    "OAUTH_PRE_TOKEN_VALIDATION": [],
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http"],
    "ALLOW_LOCALHOST_LOOPBACK": True,
    "OIDC_ISS_ENDPOINT": BASE_URL,
    **{
        f"COMPLIANT_BCP_RFC9700_{gate}": True
        for gate in (
            "IMPLICIT_GRANT",
            "PASSWORD_GRANT",
            "PKCE_METHOD",
            "ACCESS_TOKEN_TRANSPORT",
            "AUTHZ_RESPONSE_ISS",
            "TOKEN_STORAGE",
        )
    },
}
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "oauth_ext.hashers.ClientSecretHasher",
]
