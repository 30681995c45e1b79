"""Parts of the command that explains traces."""
