"""Alerts: causes are looked for on a schedule, told once until they are over, and delivered. docs/decisions/0096"""
