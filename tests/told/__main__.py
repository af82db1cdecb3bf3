"""Rewrite docs/reference/told.md."""

from tests.told.page import main

if __name__ == "__main__":
    main()
