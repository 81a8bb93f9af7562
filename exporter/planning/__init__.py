"""How many replicas a model needs, how many more fit, and at whose expense. Pure."""
