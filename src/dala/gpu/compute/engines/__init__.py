"""Engines: what runs programs. ``auto`` chooses one; ``base`` is their contract."""
