"""A simulated fleet that speaks the engines' real formats over HTTP."""
