"""Row functions of a Gaussian blur: ``rows`` has the loops, ``floats`` and ``bytes`` the sums."""
