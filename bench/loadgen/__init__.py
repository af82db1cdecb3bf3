"""Load drivers as pure functions: the plan that they are given and the report that they write."""
