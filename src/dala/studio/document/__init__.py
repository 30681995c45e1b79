"""The document of a session: tabs, chains, time and undo."""
