"""All numbers of the specification's section 8."""

from gateway.coordination.rules import Rule
from gateway.settings import env

TOOL_CALLS = Rule("tools", limit=env.integer("TOOL_CALLS_PER_HOUR", 5_000, low=1, high=10_000_000), window_s=3600)
BACKSTOP = Rule("backstop", limit=env.integer("REQUESTS_PER_MINUTE", 600, low=1, high=10_000_000), window_s=60)

# Concurrent pages and /api requests of one process, each in a thread. A request that waits longer than PAGE_WAIT_S
# (seconds) for a slot gets 503.
PAGE_CONCURRENCY = env.integer("PAGE_CONCURRENCY", 32, low=1, high=1_000)
PAGE_WAIT_S = 10.0
# The token endpoints have a separate limit, so that busy pages do not keep clients from their tokens.
OAUTH_CONCURRENCY = max(1, PAGE_CONCURRENCY // 4)
# Requests that wait for the signing keys of a trusted issuer, per process and per organization in it. An organization
# chooses its issuers, so a slow one must leave the token endpoints to others.
ISSUER_KEY_WAITS = max(1, OAUTH_CONCURRENCY // 2)
ISSUER_KEY_WAITS_OF_ORGANIZATION = max(1, OAUTH_CONCURRENCY // 4)
# Pages and /api requests that wait for a vendor's server at once, per process and per organization in it.
CONCURRENT_VENDOR_REQUESTS = max(1, min(8, PAGE_CONCURRENCY // 4))
CONCURRENT_VENDOR_REQUESTS_OF_ORGANIZATION = 2
# Exports under way, per process and per organization in it. They hold no slot of PAGE_CONCURRENCY while they are sent.
CONCURRENT_EXPORTS = max(1, min(4, PAGE_CONCURRENCY // 4))
CONCURRENT_EXPORTS_OF_ORGANIZATION = min(2, CONCURRENT_EXPORTS)
# Log pages and dashboards under way, on pages and over /api, per process and per organization in it.
CONCURRENT_LOG_READS = max(1, PAGE_CONCURRENCY // 2)
CONCURRENT_LOG_READS_OF_ORGANIZATION = max(1, PAGE_CONCURRENCY // 4)
# Checkouts and portals that wait for the payment provider at once, per process and per organization in it.
CONCURRENT_PROVIDER_REQUESTS = max(1, min(8, PAGE_CONCURRENCY // 4))
CONCURRENT_PROVIDER_REQUESTS_OF_ORGANIZATION = max(1, CONCURRENT_PROVIDER_REQUESTS // 2)
# Per organization, on routes that ask a vendor and have no number in section 8.
VENDOR_REQUESTS = Rule("vendor-questions", limit=60, window_s=60)
# Per organization: each checkout asks the payment provider several times, and a coupon can be guessed.
PAYMENT_PAGES = Rule("payment-pages", limit=60, window_s=60)
# Per address: events of the payment provider, which come in bursts.
PROVIDER_EVENTS = Rule("provider-events", limit=10 * BACKSTOP.limit, window_s=60)
# Per address: sign-ins begun without a session, each of which stores a session row for half an hour.
SIGN_IN_STARTS = Rule("sign-in-starts", limit=120, window_s=60)
SIGN_IN_WAIT_S = 1800
# Per address: requests with an invalid bearer token. A separate window, so that token guessing blocks no sign-in.
FAILED_AUTHS = Rule("refused-bearers", limit=BACKSTOP.limit, window_s=BACKSTOP.window_s)
# Per address: refused token requests. Granted ones count per client at its address (TOKENS_OF_CLIENT). Hosted clients
# share addresses, so strangers and page visitors must not use up their limit.
REFUSED_TOKEN_REQUESTS = Rule("refused-token-requests", limit=BACKSTOP.limit, window_s=BACKSTOP.window_s)
# Per client at one address: a tenth, so that a faulty client hits its own limit before the shared one.
REFUSED_TOKENS_OF_CLIENT = Rule("refused-tokens-of-client", limit=max(1, BACKSTOP.limit // 10), window_s=60)
# A client that got tokens from an address within a day is still served there while others exhaust the address's window,
# or the client's own window by naming it, if it presents a valid secret, code or refresh token. The limit is never
# reached: only whether the window is empty matters.
TOKENS_LATELY = Rule("tokens-lately", limit=1_000_000, window_s=86_400)
TOKENS_OF_CLIENT = Rule("tokens", limit=BACKSTOP.limit, window_s=BACKSTOP.window_s)

MCP_BODY_BYTES = 4 * 1024 * 1024  # D18
OAUTH_BODY_BYTES = 16 * 1024
WEBHOOK_BODY_BYTES = 512 * 1024
VENDOR_REPLY_BYTES = 10 * 1024 * 1024
JSON_DEPTH = 64
BATCH_ENTRIES = 20  # D107

# Section 8 counts requests of any size. Bodies of 64 KiB and more also count by size, in started units of 64 KiB, per
# organization: all callers of an organization share its memory and scheduling. The minimum setting fits one body of the
# maximum size.
BODY_UNIT_BYTES = 64 * 1024
_LARGE_BODY_MIB = env.integer("LARGE_BODY_MIB_PER_MINUTE", 256, low=4, high=100_000)
LARGE_BODIES = Rule("large-bodies", limit=_LARGE_BODY_MIB * 1024 * 1024 // BODY_UNIT_BYTES, window_s=60)

# Memory of one process for bodies over 64 KiB: two thirds for vendor answers, one third for request bodies. A quarter
# of the request share is for pages and /api, whose bodies are read before authentication, so that strangers take no
# memory from agents. Each reserve fits at least one body of the maximum size. docs/decisions/0025
_BODY_MEMORY_BYTES = env.integer("BODY_MEMORY_MIB", 192, low=60, high=65_536) * 1024 * 1024
VENDOR_BYTES = 2 * _BODY_MEMORY_BYTES // 3
VENDOR_BYTES_RESERVED = VENDOR_BYTES // 4
PAGE_BYTES = (_BODY_MEMORY_BYTES - VENDOR_BYTES) // 4
PAGE_BYTES_RESERVED = PAGE_BYTES // 4
INBOUND_BYTES = 3 * PAGE_BYTES
INBOUND_BYTES_RESERVED = INBOUND_BYTES // 3
# Wait for free memory: less than VENDOR_CHUNK_TIMEOUT_S, for which a vendor's answer may pause.
LARGE_BODY_WAIT_S = 5.0
# Open connections per process, and per address that is no trusted proxy, so that one client cannot take all.
CONNECTIONS_PER_PROCESS = env.integer("CONNECTIONS_PER_PROCESS", 2_000, low=10, high=100_000)
# Streams that tell callers of changed lists, of all those connections. docs/decisions/0110
CHANGE_STREAMS = max(1, CONNECTIONS_PER_PROCESS // 2)
CHANGE_STREAMS_OF_ORGANIZATION = max(1, CHANGE_STREAMS // 2)
CHANGE_STREAMS_OF_SUBJECT = 10
CONNECTIONS_PER_ADDRESS = max(1, CONNECTIONS_PER_PROCESS // 2)

ACCESS_TOKEN_LIFETIME_S = 3600
SERVICE_CLIENT_DEFAULT_DAYS = 90  # D70
SERVICE_CLIENT_MAX_DAYS = 365
MANAGEMENT_TOKEN_DEFAULT_DAYS = 90  # D168
MANAGEMENT_TOKEN_MAX_DAYS = 365
ORGANIZATIONS_PER_PERSON = 20  # D36

# Rows per organization (D161). Members and invitations are bounded here too; they hold no vendor secret, so their
# limits are high. Server access is bounded by members and teams times vendors.
SERVICE_CLIENTS_PER_ORGANIZATION = env.integer("SERVICE_CLIENTS_PER_ORGANIZATION", 200, low=1, high=100_000)
TEAMS_PER_ORGANIZATION = env.integer("TEAMS_PER_ORGANIZATION", 200, low=1, high=100_000)
NAMED_KEYS_PER_VENDOR = env.integer("NAMED_KEYS_PER_VENDOR", 100, low=1, high=100_000)
MANAGEMENT_TOKENS_PER_MEMBER = env.integer("MANAGEMENT_TOKENS_PER_MEMBER", 50, low=1, high=10_000)
MEMBERS_PER_ORGANIZATION = env.integer("MEMBERS_PER_ORGANIZATION", 10_000, low=1, high=1_000_000)
TRUSTED_ISSUERS_PER_ORGANIZATION = env.integer("TRUSTED_ISSUERS_PER_ORGANIZATION", 5, low=1, high=1_000)
INVITATIONS_PER_ORGANIZATION = env.integer("INVITATIONS_PER_ORGANIZATION", 500, low=1, high=100_000)

# Generous, because hosted clients share addresses. D117
CLIENT_REGISTRATIONS = Rule("oauth-register", limit=60, window_s=60)
CLIENT_REGISTRATIONS_OF_ALL = Rule("oauth-register-all", limit=600, window_s=60)
# The last third is kept for addresses with at most CLIENT_REGISTRATIONS_FEW registrations, so that ten addresses cannot
# use up the global limit.
CLIENT_REGISTRATIONS_SHARE_KEPT = CLIENT_REGISTRATIONS_OF_ALL.limit // 3
CLIENT_REGISTRATIONS_FEW = 5
REGISTERED_CLIENTS = env.integer("REGISTERED_CLIENTS", 100_000, low=1, high=10_000_000)
AUTHORIZATION_REQUEST_LIFETIME_S = 600
AUTHORIZATION_CODE_LIFETIME_S = 60  # D120
CONSENT_REMEMBERED_DAYS = 30  # D119
# The identity provider is asked again after 15 minutes, less the time that asking takes.
PROVIDER_WORD_S = 14 * 60
PROVIDER_ASKED_EVERY_S = 30  # per person, across all processes
PROVIDER_SILENCE_S = 4 * 3600  # the last confirmation counts this long while the provider is unavailable
# After that, a request waits this long for a confirmation that another request is fetching; at most so many requests
# wait in one process.
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
# Per process: sessions with vendors, and those of them that need not open their credential for the next call.
# docs/decisions/0051
VENDOR_SESSIONS = env.integer("VENDOR_SESSIONS", 50_000, low=10, high=10_000_000)
VENDOR_SESSIONS_AWAKE = env.integer("VENDOR_SESSIONS_AWAKE", 20_000, low=10, high=10_000_000)
# Connections of one process to one vendor, shared by organizations. docs/decisions/0008
VENDOR_CONNECTIONS_PER_ORIGIN = env.integer("VENDOR_CONNECTIONS_PER_ORIGIN", 100, low=2, high=10_000)
# Concurrent calls of one organization to one vendor, out of those connections. docs/decisions/0008
VENDOR_CALLS_PER_ORGANIZATION = env.integer("VENDOR_CALLS_PER_ORGANIZATION", 30, low=1, high=100)
VENDOR_CALLS_QUEUED = 1_000
# Questions of vendors that wait for a caller's answer, in one process. Each holds a connection and a place of its
# organization: half of them stay for calls that ask nothing. docs/decisions/0110
OPEN_QUESTIONS_OF_VENDOR = max(1, VENDOR_CONNECTIONS_PER_ORIGIN // 2)
OPEN_QUESTIONS_OF_ORGANIZATION = max(1, VENDOR_CALLS_PER_ORGANIZATION // 2)
OPEN_QUESTIONS_OF_SUBJECT = 5
# Resources that callers hear of, in one process: of all, at one vendor, of an organization, of a subject. And streams
# of a vendor's own messages, each with one credential: they hold connections. docs/decisions/0113
SUBSCRIPTIONS = 10_000
SUBSCRIPTIONS_AT_VENDOR = 4_000
SUBSCRIPTIONS_OF_ORGANIZATION = 1_000
SUBSCRIPTIONS_OF_SUBJECT = 200
LISTENING_STREAMS_OF_VENDOR = VENDOR_CONNECTIONS_PER_ORIGIN // 4
LISTENING_STREAMS_OF_ORGANIZATION = (LISTENING_STREAMS_OF_VENDOR + 1) // 2
# Those that sessions keep, in all processes: of one session (also of one request), of a subject, of an organization.
# And new ones of an organization.
SUBSCRIPTIONS_OF_SESSION = 50
SUBSCRIPTIONS_KEPT_OF_SUBJECT = 500
SUBSCRIPTIONS_KEPT_OF_ORGANIZATION = 2_000
NEW_SUBSCRIPTIONS = Rule("subscriptions", limit=2_000, window_s=3600)
# Sessions of callers whose end or log level is kept for all processes, for seven days each. docs/decisions/0110
SESSION_CHANGES = Rule("session-changes", limit=2_000, window_s=86_400)
SESSION_CHANGES_OF_ORGANIZATION = Rule("session-changes-of-organization", limit=10_000, window_s=86_400)
VENDOR_CALLS_WAIT_S = 5.0
TOOL_LIST_TTL_S = 300.0
# A list that the vendor has shown to another credential within TOOL_LIST_TTL_S is not fetched again before this time.
# docs/decisions/0051
TOOL_LIST_LONGEST_S = 3_600.0
TOOL_LIST_DEADLINE_S = 8.0
TOOL_LIST_MAX_PAGES = 100
# Per process: credentials whose tool list is known, and memory of all distinct lists. docs/decisions/0051
TOOL_INDEXES = env.integer("TOOL_INDEXES", 50_000, low=10, high=10_000_000)
TOOL_LIST_BYTES = env.integer("TOOL_LIST_MIB", 64, low=8, high=65_536) * 1024 * 1024
# Per process: memory of joined answers to tools/list. docs/decisions/0051
TOOL_LIST_BODY_BYTES = env.integer("TOOL_LIST_BODY_MIB", 32, low=8, high=65_536) * 1024 * 1024
# Per process: memory of vendors' lists of resources and prompts. docs/decisions/0104
ITEM_LIST_BYTES = 32 * 1024 * 1024
# Per process: memory of the search indexes of tool lists. docs/decisions/0103
TOOL_SEARCH_BYTES = env.integer("TOOL_SEARCH_MIB", 32, low=8, high=65_536) * 1024 * 1024

AUDIT_RETENTION_DAYS = env.integer("AUDIT_RETENTION_DAYS", 400, low=1, high=36_500)  # D87

API_BODY_BYTES = 256 * 1024  # D18
REDEEM_CODE = Rule("redeem-code", limit=5, window_s=900)
INVITATION_CREATE = Rule("invitation-create", limit=10, window_s=3600)
INVITATION_ACCEPT = Rule("invitation-accept", limit=5, window_s=900)
# Per person.
ACCESS_REQUEST_CREATE = Rule("access-request-create", limit=30, window_s=3600)
CREDENTIAL_STORE = Rule("credential-store", limit=10, window_s=60)
CREDENTIAL_KEY_CREATE = Rule("credential-key-create", limit=10, window_s=60)
AGENT_KEY_MINT = Rule("agent-key-mint", limit=10, window_s=3600)
MANAGEMENT_TOKEN_CREATE = Rule("management-token-create", limit=10, window_s=3600)
CLIENT_SECRET_ROTATION = Rule("client-secret-rotation", limit=10, window_s=3600)
INVITATION_DEFAULT_DAYS = 7  # D48
INVITATION_MAX_DAYS = 30
INVITATION_MAX_USES = 100  # D49
ALLOWLIST_TOOLS = 1_000  # D76
ALLOWLIST_ITEMS = 500  # resources or prompts of one list
ALLOWLIST_TEMPLATES = 50  # of those; each is tried for every address
# Of all entries of a list together: callers are in memory with their lists, of each vendor.
ALLOWLIST_ITEM_CHARACTERS = 64_000
DISCOVER_DEADLINE_S = 15.0
