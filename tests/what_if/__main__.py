"""Rewrite docs/reference/what-if.md."""

from tests.what_if.page import main

if __name__ == "__main__":
    main()
