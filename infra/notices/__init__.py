"""Notices: what happened that a person should know of, kept until it was sent to every address."""
