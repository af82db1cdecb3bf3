"""The nights of `nightbench demo`, which show what the pages and the queries say before a night was measured."""
