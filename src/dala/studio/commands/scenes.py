"""Commands (scenes)."""
