"""Parts of the writer of videos: pixel formats, hardware encoders, files and streams."""
