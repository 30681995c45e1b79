"""Notices of media files: see :mod:`dala.notices`."""

from dala.notices import MediaNotice, collected, notify

__all__ = ["MediaNotice", "collected", "notify"]
