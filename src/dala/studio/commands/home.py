"""Commands (home)."""
