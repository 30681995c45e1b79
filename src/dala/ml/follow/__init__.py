"""Models that watch the video nodes of scenes, and the targets that other nodes follow there."""
