"""Scene files: scenes as JSON, read and written."""
