"""The process supervisor behind `make run`: one terminal, one folder, every process of the service and its demo."""
