"""Fleet and plans -> bytes. Pure."""
