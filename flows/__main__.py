"""`python -m flows` is `nightbench`."""

from flows.cli import main

main()
