"""Figures that a process counts for Prometheus. Calls only add to numbers in memory.   docs/decisions/0076"""
