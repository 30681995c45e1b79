"""Model weights: where they come from, fetched, checked, found."""
