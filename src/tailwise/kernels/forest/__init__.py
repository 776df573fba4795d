"""Trees over rows: growing them, passing rows down, adding up the leaves."""
