"""The process supervisor behind `make run`: runs all processes of the service and its demo in one terminal."""
