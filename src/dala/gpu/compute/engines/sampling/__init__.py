"""Sampling geometry shared by engines: resize taps, Gaussian weights, warp coordinates."""
