"""Sizes of what one web process keeps. docs/many-processes.md says what a unit costs."""

from gateway.settings import env

# Past each bound the oldest entry is dropped; of results, the oldest of the organization that holds most.
RESULT_CACHE_BYTES = env.integer("RESULT_CACHE_MIB", 64, low=1, high=65_536) * 1024 * 1024
CACHED_DATA_KEYS = env.integer("CACHED_DATA_KEYS", 4_096, low=10, high=10_000_000)
VENDOR_CIRCUITS = env.integer("VENDOR_CIRCUITS", 5_000, low=10, high=10_000_000)
# Linux: the heap of a web process is moved to huge pages.   docs/decisions/0058
HUGE_PAGES = env.flag("HUGE_PAGES", True)
