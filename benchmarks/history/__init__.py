"""The history of real engines: nights of every release that we can build, in an order drawn at random, kept as data."""
