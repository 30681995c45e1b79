"""Model weights: origins, download, verification, search."""
