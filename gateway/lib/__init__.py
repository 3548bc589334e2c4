"""One noun each, below every app: clock, ids, secrets, crypto, outbound, strict_json, text."""
