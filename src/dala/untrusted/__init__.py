"""The gate for names, addresses and secrets of strangers."""
