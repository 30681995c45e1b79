"""The CPU engine's own code for operations, a file a domain; see ``engines/operations.py``."""
