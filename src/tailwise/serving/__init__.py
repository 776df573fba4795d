"""The REST service and its pages."""
