"""The pictures and sentences of one night, one file each, in the order of its page."""
