"""Many videos, pictures and scenes, on one machine or on many."""
