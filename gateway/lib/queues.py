"""Pure: names of Celery's queues, for the settings and for the commands that start workers."""

SHIPPING_QUEUE = "gateway-shipping"
SHIPPING_THREADS = "32"  # without SHIPPING_CONCURRENCY
