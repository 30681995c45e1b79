"""What strangers name: text goes in, and what comes out is open already, or refused.

Names that come from a page, a scene file, a record or a playlist pass through this room. Calls of
the user's own program take paths and addresses as they are.
"""
