"""The support console below /admin: search, organizations, people, requests, staff actions. docs/decisions/0098"""
