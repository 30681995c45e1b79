"""What the page can offer: filters, models, kernels, nodes and the language, from declarations."""
