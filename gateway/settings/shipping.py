"""Log shipping. Spec: §2 Log shipping destination · D95, D98"""

from gateway.lib.queues import SHIPPING_THREADS
from gateway.settings import env
from gateway.settings.limits import PAGE_CONCURRENCY

LOG_DESTINATIONS_PER_ORGANIZATION = env.integer("LOG_DESTINATIONS_PER_ORGANIZATION", 10, low=1, high=100)
# Deliveries at once: in the whole deployment, and of one organization.
SHIPPING_CONCURRENCY = env.integer("SHIPPING_CONCURRENCY", int(SHIPPING_THREADS), low=2, high=256)
SHIPPING_CONCURRENCY_OF_ORGANIZATION = max(1, SHIPPING_CONCURRENCY // 8)
# Of one organization, before compression.
SHIPPING_BYTES_PER_HOUR = env.integer("SHIPPING_MIB_PER_HOUR", 10_240, low=1, high=1_000_000) * 1024 * 1024
# Test records that wait for the answer of a platform, per process and per organization in it. Each holds a slot of
# PAGE_CONCURRENCY.
CONCURRENT_SHIPPING_TESTS = max(1, min(8, PAGE_CONCURRENCY // 4))
CONCURRENT_SHIPPING_TESTS_OF_ORGANIZATION = 2
