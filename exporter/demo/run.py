"""Runs the demo."""


async def run_demo(listen_address: str) -> None:
    raise NotImplementedError(listen_address)
