"""Tables as people hand them on: in pages, reports, spreadsheets and text, each read into the same value."""
