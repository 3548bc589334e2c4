"""Estimates on the usage dashboards. Spec: §2 Usage aggregates · D138"""

# A heuristic: the texts of tool lists are mostly English words and JSON.
SAVINGS_BYTES_PER_TOKEN = 4
# US dollars for a million tokens that a model reads.
SAVINGS_USD_PER_MTOK = 3.00
