"""Drills: accidents on purpose, one question a file, counted. ``python -m drills NAME --count N``."""
