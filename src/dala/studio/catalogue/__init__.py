"""The catalogue of the page: filters, models, kernels, nodes and the language, as declared."""
