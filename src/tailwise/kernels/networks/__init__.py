"""Dense layers on sparse rows and on candidate scores."""
