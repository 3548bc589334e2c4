"""All checks of the doctor, in the order of their lines."""

from __future__ import annotations

from gateway.doctor import (
    clock_checks,
    database_checks,
    key_checks,
    provider_checks,
    redis_checks,
    settings_checks,
    work_checks,
)
from gateway.doctor.verdict import Check

CHECKS = (
    Check("settings", settings_checks.settings_read),
    Check("proxy", settings_checks.proxy),
    Check("base_url", settings_checks.base_url),
    Check("identity_provider", provider_checks.identity_provider),
    Check("storage", database_checks.storage),
    Check("database", database_checks.database),
    Check("migrations", database_checks.migrations, needs="database"),
    Check("connections", database_checks.connections_enough, needs="database"),
    Check("pooler", database_checks.pooler, needs="database"),
    Check("durability", database_checks.durability, needs="database"),
    Check("partitions", database_checks.partitions_ahead, needs="migrations"),
    Check("transactions", database_checks.long_transactions, needs="database"),
    Check("redis", redis_checks.reachable),
    Check("redis_tls", redis_checks.tls),
    Check("redis_settings", redis_checks.configured, needs="redis"),
    Check("clocks", clock_checks.database_clock, needs="database"),
    Check("clocks", clock_checks.redis_clock, needs="redis"),
    Check("sealing_keys", key_checks.sealing_keys, needs="migrations"),
    Check("key_holders", key_checks.key_holders, needs="migrations"),
    Check("key_ages", key_checks.key_ages, needs="migrations"),
    Check("signing_keys", key_checks.signing_keys, needs="migrations"),
    Check("schedule", work_checks.worker, needs="migrations"),
    Check("queues", work_checks.queues, needs="redis"),
    Check("outbox", work_checks.outbox, needs="migrations"),
    Check("log_shipping", work_checks.log_shipping, needs="migrations"),
    Check("messages", work_checks.messages, needs="migrations"),
    Check("revocation_journal", work_checks.revocation_journal),
    Check("restored", work_checks.restored),
    Check("vendors", provider_checks.vendors, needs="migrations"),
)
