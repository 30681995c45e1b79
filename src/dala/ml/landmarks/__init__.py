"""Models of landmarks: a detector, regions of interest, and the points in them."""
