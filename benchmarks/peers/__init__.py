"""The load tools of others at their newest releases: run against the truth server, and audited by what they wrote."""
