"""Celery: broker and schedule. Redis if configured, otherwise a folder on this host."""

from __future__ import annotations

from celery.schedules import crontab

from gateway.lib.queues import SHIPPING_QUEUE
from gateway.settings import env
from gateway.settings.base import REDIS_CLUSTER, REDIS_URL, VAR
from gateway.settings.billing import BILLING_MODE
from gateway.settings.health import HEALTH_PROBE_INTERVAL_S

BROKER_ANSWER_S = 5
REDIS_TRANSPORT_OPTIONS: dict[str, object] = {
    "global_keyprefix": "gateway:queue:",
    "visibility_timeout": 600,
    # Redis can fall silent without closing a connection. Celery would wait for an answer without end.
    "socket_timeout": BROKER_ANSWER_S,
    "socket_connect_timeout": BROKER_ANSWER_S,
    "health_check_interval": BROKER_ANSWER_S,  # a worker is back after two of them and a second
}
# Celery's client speaks to no cluster: it waits for several queues with one command.
QUEUE_REDIS_URL = env.text("QUEUE_REDIS_URL") or REDIS_URL
if REDIS_CLUSTER and QUEUE_REDIS_URL == REDIS_URL:
    env.refuse("QUEUE_REDIS_URL", "must name a Redis of the queue's own, because REDIS_CLUSTER is on.")
if QUEUE_REDIS_URL:
    CELERY_BROKER_URL = QUEUE_REDIS_URL
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = REDIS_TRANSPORT_OPTIONS
    # Any number of schedulers may run: one of them sends.
    CELERY_BEAT_SCHEDULER = "gateway.leased_scheduler:LeasedScheduler"
else:
    _queue = VAR / "queue"
    CELERY_BROKER_URL = "filesystem://"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_queue),
        "data_folder_out": str(_queue),  # the same folder in both directions: all processes share one host
        "control_folder": str(VAR / "queue-control"),
        "store_processed": False,
    }
# Celery loads this module by name (gateway.celery). Web processes enqueue nothing, so they never import it.
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_TIME_LIMIT = 300
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_DEFAULT_QUEUE = "gateway"
# Deliveries wait for other people's servers, so they have a queue and a worker of their own.
CELERY_TASK_ROUTES = {
    name: {"queue": SHIPPING_QUEUE}
    for name in (
        "audit.ship_logs",
        "audit.deliver_logs",
        "billing.mirror",
        "billing.mirror_customers",
        "credentials.revoke_at_vendors",
        "mail.send_waiting",
        "proxy.deliver_alerts",
    )
}
SHIPPING_EVERY_S = 2.0
# So old may a message be that a busy worker, or one whose clock is ahead, still acts on. Of tasks that take turns or
# claim each row before they act on it.
LATE_S = 20.0
MAIL_EVERY_S = 5.0
ALERTS_EVERY_S = 30.0
ALERTS_SLOWLY_EVERY_S = 60.0  # with the looks that read more rows
ALERT_DELIVERY_EVERY_S = 5.0
CELERY_TIMEZONE = "UTC"
REVOCATIONS_EVERY_S = 10.0
USAGE_EVERY_S = 5.0
MIRROR_EVERY_S = 30.0
# Each task can be derived from the database again, so the broker may lose or delay a message.
CELERY_BEAT_SCHEDULE = {
    "audit.prune_request_log": {"task": "audit.prune_request_log", "schedule": crontab(hour="3", minute="17")},
    "audit.make_partitions": {"task": "audit.make_partitions", "schedule": crontab(hour="2", minute="7")},
    # A message that waited for a minute has a successor.
    "audit.seal_logs": {"task": "audit.seal_logs", "schedule": 60.0, "options": {"expires": 60.0}},
    "audit.remove_usage": {"task": "audit.remove_usage", "schedule": crontab(hour="3", minute="37")},
    "audit.roll_up_usage": {
        "task": "audit.roll_up_usage",
        "schedule": USAGE_EVERY_S,
        "options": {"expires": LATE_S},
    },
    "audit.ship_logs": {
        "task": "audit.ship_logs",
        "schedule": SHIPPING_EVERY_S,
        "options": {"expires": LATE_S},
    },
    "mail.send_waiting": {"task": "mail.send_waiting", "schedule": MAIL_EVERY_S, "options": {"expires": LATE_S}},
    "mail.remove_old": {"task": "mail.remove_old", "schedule": crontab(hour="4", minute="7")},
    "audit.prune_shipping": {"task": "audit.prune_shipping", "schedule": crontab(minute="11")},
    "credentials.revoke_at_vendors": {
        "task": "credentials.revoke_at_vendors",
        "schedule": REVOCATIONS_EVERY_S,
        "options": {"expires": LATE_S},
    },
    "proxy.probe_vendors": {"task": "proxy.probe_vendors", "schedule": HEALTH_PROBE_INTERVAL_S},
    "proxy.record_status": {"task": "proxy.record_status", "schedule": 60.0, "options": {"expires": 60.0}},
    "proxy.watch_alerts": {
        "task": "proxy.watch_alerts",
        "schedule": ALERTS_EVERY_S,
        "options": {"expires": ALERTS_EVERY_S},
    },
    "proxy.watch_alerts_slowly": {
        "task": "proxy.watch_alerts",
        "kwargs": {"is_slow": True},
        "schedule": ALERTS_SLOWLY_EVERY_S,
        "options": {"expires": ALERTS_SLOWLY_EVERY_S},
    },
    "proxy.deliver_alerts": {
        "task": "proxy.deliver_alerts",
        "schedule": ALERT_DELIVERY_EVERY_S,
        "options": {"expires": LATE_S},
    },
    "proxy.remove_old_alerts": {"task": "proxy.remove_old_alerts", "schedule": crontab(hour="4", minute="27")},
    "gateway.remove_expired_sessions": {"task": "gateway.remove_expired_sessions", "schedule": crontab(minute="41")},
    "gateway.remove_idempotency_records": {
        "task": "gateway.remove_idempotency_records",
        "schedule": crontab(minute="53"),
    },
    # Access is refused from its end on; the tasks write the log.
    **{
        name: {"task": name, "schedule": 60.0, "options": {"expires": 60.0}}
        for name in ("orgs.remove_ended_access", "oauth_ext.remove_ended_access")
    },
    "orgs.remind_of_invitations": {"task": "orgs.remind_of_invitations", "schedule": crontab(minute="31")},
    "orgs.remove_old_decisions": {"task": "orgs.remove_old_decisions", "schedule": crontab(hour="3", minute="47")},
    "oauth_ext.remove_expired_tokens": {"task": "oauth_ext.remove_expired_tokens", "schedule": crontab(minute="23")},
}
if BILLING_MODE != "disabled":
    CELERY_BEAT_SCHEDULE["billing.record_lapses"] = {
        "task": "billing.record_lapses",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    }
if BILLING_MODE == "stripe":
    CELERY_BEAT_SCHEDULE |= {
        # Each run takes those that were not compared this night.
        "billing.reconcile": {
            "task": "billing.reconcile",
            "schedule": crontab(hour="1-5", minute="*/10"),
            "options": {"expires": 600.0},
        },
        "billing.cancel_subscriptions": {
            "task": "billing.cancel_subscriptions",
            "schedule": 60.0,
            "options": {"expires": 60.0},
        },
        "billing.prune_events": {"task": "billing.prune_events", "schedule": crontab(hour="0", minute="47")},
        "billing.mirror": {
            "task": "billing.mirror",
            "schedule": MIRROR_EVERY_S,
            "options": {"expires": MIRROR_EVERY_S},
        },
        "billing.mirror_customers": {"task": "billing.mirror_customers", "schedule": crontab(hour="5", minute="27")},
    }
# Only Redis needs the outbox. Web processes relay it every second; this task covers the time when none can.
if REDIS_URL:
    _every_s = 5.0
    CELERY_BEAT_SCHEDULE["coordination.relay_outbox"] = {
        "task": "coordination.relay_outbox",
        "schedule": _every_s,
        "options": {"expires": _every_s},  # messages that pile up while no worker runs are worthless
    }
