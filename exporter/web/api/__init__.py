"""The JSON API. What is not known is null."""
