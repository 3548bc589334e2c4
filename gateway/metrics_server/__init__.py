"""The program that answers Prometheus for all processes of a host.   docs/decisions/0076"""
