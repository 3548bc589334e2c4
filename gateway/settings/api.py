"""The management API: JSON only, sessions and management tokens, one error shape, one OpenAPI document."""

from gateway.settings.security import SESSION_COOKIE_NAME

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["gateway.web.api_json.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["gateway.web.api_json.StrictJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "gateway.web.token_authentication.ManagementTokenOnly",
        "gateway.web.session_authentication.SessionOnly",
    ],
    # gateway.web.gate does authorization and rate limiting.
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_THROTTLE_CLASSES": [],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "gateway.web.api_json.OnlyJSON",
    "DEFAULT_SCHEMA_CLASS": "gateway.web.openapi.GateSchema",
    "EXCEPTION_HANDLER": "gateway.web.api_errors.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "UPLOADED_FILES_USE_URL": False,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Gateway management API",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "DESCRIPTION": (
        "Organizations, people, access and credentials. Send a management token, or the session cookie of a"
        " signed-in person."
        " Errors share one body: `error` is a stable code, `message` a sentence, `requestId` what to tell support."
    ),
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api",
    "PREPROCESSING_HOOKS": ["gateway.web.openapi.only_api"],
    "POSTPROCESSING_HOOKS": ["gateway.web.openapi.tidy"],
    "COMPONENT_SPLIT_PATCH": False,
    "APPEND_COMPONENTS": {
        "securitySchemes": {
            "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE_NAME},
            "managementToken": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token from your profile, `gwt_…`. It opens one organization with your role.",
            },
        }
    },
    # Members of response serializers are required unless they say otherwise.
    "COMPONENT_NO_READ_ONLY_REQUIRED": False,
    "SERVE_PUBLIC": True,
    "DISABLE_ERRORS_AND_WARNINGS": False,
}
