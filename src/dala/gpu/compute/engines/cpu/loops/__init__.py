"""Loop nests that several operations share, and how their work is divided."""
