"""The gate for names of strangers: text goes in, and comes out as an open file, or is refused.

Names that come from a page, a scene file, a record or a playlist pass through this room. Calls of
the user's own program take paths and addresses as they are.
"""
