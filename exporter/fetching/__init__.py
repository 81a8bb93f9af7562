"""The I/O towards targets: HTTP, state stores, and one poll over them."""
