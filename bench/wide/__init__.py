"""Many callers that each call now and then, and several processes: `python -m bench --wide`."""
