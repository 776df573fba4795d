"""Self-contained HTML pages: pieces, small charts, one style sheet; no script, nothing fetched."""
