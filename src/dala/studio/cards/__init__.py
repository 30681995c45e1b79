"""The cards of a chain: filters, kernels and models, with their values."""
