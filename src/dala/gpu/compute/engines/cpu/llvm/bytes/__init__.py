"""Programs that store bytes: what they keep, and arithmetic that is cheaper for them."""
