"""Animated pictures (GIF, APNG, WebP) as videos: frames with exact times and alpha, in and out."""
