"""Pictures for pages: rendering, scaling, encoding, charts and costs."""
