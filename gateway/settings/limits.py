"""Every number of the specification's section 8, written once."""

from __future__ import annotations

from gateway.coordination.rules import Rule
from gateway.settings import env

TOOL_CALLS = Rule("tools", limit=env.integer("TOOL_CALLS_PER_HOUR", 5_000, low=1, high=10_000_000), window_s=3600)
BACKSTOP = Rule("backstop", limit=env.integer("REQUESTS_PER_MINUTE", 600, low=1, high=10_000_000), window_s=60)

# Pages and /api in one process, each a thread; who waits longer than PAGE_WAIT_S (seconds) for room is answered 503.
PAGE_CONCURRENCY = env.integer("PAGE_CONCURRENCY", 32, low=1, high=1_000)
PAGE_WAIT_S = 10.0
# The token endpoints of one process have a room of their own: pages that wait must not keep a client from its tokens.
OAUTH_CONCURRENCY = max(1, PAGE_CONCURRENCY // 4)
# Pages and /api requests that wait for a vendor's server at once, of a process and of one organization in it.
VENDOR_QUESTIONS_AT_ONCE = max(1, min(8, PAGE_CONCURRENCY // 4))
VENDOR_QUESTIONS_OF_ORGANIZATION_AT_ONCE = 2
# For each organization, where section 8 has no number for a route that asks a vendor.
VENDOR_QUESTIONS = Rule("vendor-questions", limit=60, window_s=60)
# For each address, of sign-ins that browsers without a session begin: each leaves a row for half an hour.
SIGN_IN_STARTS = Rule("sign-in-starts", limit=120, window_s=60)
SIGN_IN_WAIT_S = 1800
# For each address, of bearers that nobody is behind. A window of their own: guessing keeps nobody from signing in.
REFUSED_BEARERS = Rule("refused-bearers", limit=BACKSTOP.limit, window_s=BACKSTOP.window_s)
# For each address, of token requests that were refused; and for each client there, of those that were granted. Hosted
# clients share the addresses they come from: neither strangers nor visitors of pages keep them from their tokens.
REFUSED_TOKEN_REQUESTS = Rule("refused-token-requests", limit=BACKSTOP.limit, window_s=BACKSTOP.window_s)
# A tenth of it for each client there, so that one client's faults are held against it before they are held against all
# who share the address.
REFUSED_TOKENS_OF_CLIENT = Rule("refused-tokens-of-client", limit=max(1, BACKSTOP.limit // 10), window_s=60)
# A client that got tokens from an address within a day is heard there also while strangers use up the address's window,
# and while they use up the client's own one by naming it, if it brings a secret, code or refresh token that is its own.
# The limit is never reached on purpose: the window is asked only whether anything is in it.
TOKENS_LATELY = Rule("tokens-lately", limit=1_000_000, window_s=86_400)
TOKENS_OF_CLIENT = Rule("tokens", limit=BACKSTOP.limit, window_s=BACKSTOP.window_s)

MCP_BODY_BYTES = 4 * 1024 * 1024  # D18
OAUTH_BODY_BYTES = 16 * 1024
VENDOR_REPLY_BYTES = 10 * 1024 * 1024
JSON_DEPTH = 64
BATCH_ENTRIES = 20  # D107

# Section 8 counts requests, whatever their size. Bodies of 64 KiB and more are counted by their size as well, in begun
# units of 64 KiB, for the organization: it may have many callers, and turns and memory are shared out by organization.
# The least that can be set has room for one body of the largest size.
BODY_UNIT_BYTES = 64 * 1024
_LARGE_BODY_MIB = env.integer("LARGE_BODY_MIB_PER_MINUTE", 256, low=4, high=100_000)
LARGE_BODIES = Rule("large-bodies", limit=_LARGE_BODY_MIB * 1024 * 1024 // BODY_UNIT_BYTES, window_s=60)

# Memory of one process for bodies of more than 64 KiB, a third of it for what comes in. One organization has a quarter:
# at least one body of the largest size. A quarter of what comes in is for pages and /api, whose bodies are read before
# the caller is known: strangers keep no agent from its calls. One address has a quarter of that.
_BODY_MEMORY_BYTES = env.integer("BODY_MEMORY_MIB", 192, low=60, high=65_536) * 1024 * 1024
VENDOR_BYTES = 2 * _BODY_MEMORY_BYTES // 3
PAGE_BYTES = INBOUND_BYTES_OF_ONE = (_BODY_MEMORY_BYTES - VENDOR_BYTES) // 4
INBOUND_BYTES = 3 * INBOUND_BYTES_OF_ONE
PAGE_BYTES_OF_ONE = PAGE_BYTES // 4
VENDOR_BYTES_OF_ONE = VENDOR_BYTES // 4
LARGE_BODY_WAIT_S = 5.0  # for room: less than the 10 s for which a vendor's answer may pause
# Open connections of one process, and of one address that is no trusted proxy: one client cannot take all of them.
CONNECTIONS_PER_PROCESS = env.integer("CONNECTIONS_PER_PROCESS", 2_000, low=10, high=100_000)
CONNECTIONS_PER_ADDRESS = max(1, CONNECTIONS_PER_PROCESS // 2)

ACCESS_TOKEN_LIFETIME_S = 3600
SERVICE_CLIENT_DEFAULT_DAYS = 90  # D70
SERVICE_CLIENT_MAX_DAYS = 365
ORGANIZATIONS_PER_PERSON = 20  # D36

# Rows of one organization. D161; the last two bound what D161 leaves open: members and links hold no vendor's secret,
# so they may be many. Grants are bounded by members and teams times vendors of the catalog.
SERVICE_CLIENTS_PER_ORGANIZATION = env.integer("SERVICE_CLIENTS_PER_ORGANIZATION", 200, low=1, high=100_000)
TEAMS_PER_ORGANIZATION = env.integer("TEAMS_PER_ORGANIZATION", 200, low=1, high=100_000)
NAMED_KEYS_PER_VENDOR = env.integer("NAMED_KEYS_PER_VENDOR", 100, low=1, high=100_000)
MEMBERS_PER_ORGANIZATION = env.integer("MEMBERS_PER_ORGANIZATION", 10_000, low=1, high=1_000_000)
INVITATIONS_PER_ORGANIZATION = env.integer("INVITATIONS_PER_ORGANIZATION", 500, low=1, high=100_000)

# Hosted clients share the addresses they come from, so registering is limited generously. D117
CLIENT_REGISTRATIONS = Rule("oauth-register", limit=60, window_s=60)
CLIENT_REGISTRATIONS_OF_ALL = Rule("oauth-register-all", limit=600, window_s=60)
# The last third of those is for addresses that registered few so far: ten addresses do not use up all.
CLIENT_REGISTRATIONS_SHARE_KEPT = CLIENT_REGISTRATIONS_OF_ALL.limit // 3
CLIENT_REGISTRATIONS_FEW = 5
REGISTERED_CLIENTS = env.integer("REGISTERED_CLIENTS", 100_000, low=1, high=10_000_000)
AUTHORIZATION_REQUEST_LIFETIME_S = 600
AUTHORIZATION_CODE_LIFETIME_S = 60  # D120
CONSENT_REMEMBERED_DAYS = 30  # D119
# The identity provider is asked again about a person whose last word is older: 15 minutes, less what asking takes.
PROVIDER_WORD_S = 14 * 60
PROVIDER_ASKED_EVERY_S = 30  # about one person, by all processes together
PROVIDER_SILENCE_S = 4 * 3600  # how long the last word counts while the provider is away
# Where it counts no more, a request waits for the word that another one is asking for; so many of one process.
PROVIDER_WORD_WAIT_S = 1.0
PROVIDER_WORDS_AWAITED_AT_ONCE = max(1, PAGE_CONCURRENCY // 4)
REFRESH_GRACE_S = 90  # D123
REFRESH_GRACE_CHILDREN = 5
REFRESH_IDLE_DAYS = 30
REFRESH_ABSOLUTE_DAYS = 180
DEVICE_STARTS = Rule("device-authorization", limit=20, window_s=60)
DEVICE_CODE_TTL = env.integer("DEVICE_CODE_TTL", 600, low=1, high=86_400)
DEVICE_POLL_INTERVAL = env.integer("DEVICE_POLL_INTERVAL", 5, low=1, high=300)
DEVICE_SLOW_DOWN_S = 5  # RFC 8628 3.5
USER_CODE_MISSES = 10  # D126
USER_CODE_MISSES_WINDOW_S = 900

VENDOR_CONNECT_TIMEOUT_S = 5.0
VENDOR_CHUNK_TIMEOUT_S = 10.0
VENDOR_SESSION_IDLE_S = 300.0  # D104
# To one vendor, of one process; organizations share them. docs/decisions/0008
VENDOR_CONNECTIONS_PER_ORIGIN = env.integer("VENDOR_CONNECTIONS_PER_ORIGIN", 100, low=2, high=10_000)
# Under way at one vendor for one organization, of those connections. docs/decisions/0008
VENDOR_CALLS_PER_ORGANIZATION = env.integer("VENDOR_CALLS_PER_ORGANIZATION", 30, low=1, high=100)
VENDOR_CALLS_WAITING = 1_000
VENDOR_CALLS_WAIT_S = 5.0
TOOL_LIST_TTL_S = 300.0
TOOL_LIST_DEADLINE_S = 8.0
TOOL_LIST_MAX_PAGES = 100

AUDIT_RETENTION_DAYS = env.integer("AUDIT_RETENTION_DAYS", 400, low=1, high=36_500)  # D87

API_BODY_BYTES = 256 * 1024  # D18
REDEEM_CODE = Rule("redeem-code", limit=5, window_s=900)
INVITATION_CREATE = Rule("invitation-create", limit=10, window_s=3600)
INVITATION_ACCEPT = Rule("invitation-accept", limit=5, window_s=900)
CREDENTIAL_STORE = Rule("credential-store", limit=10, window_s=60)
CREDENTIAL_KEY_CREATE = Rule("credential-key-create", limit=10, window_s=60)
AGENT_KEY_MINT = Rule("agent-key-mint", limit=10, window_s=3600)
INVITATION_DEFAULT_DAYS = 7  # D48
INVITATION_MAX_DAYS = 30
INVITATION_MAX_USES = 100  # D49
ALLOWLIST_TOOLS = 1_000  # D76
DISCOVER_DEADLINE_S = 15.0
