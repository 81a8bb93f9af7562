"""The exporter against engines that really run: `make test-engines`.

Not part of `make test`: the first run installs gigabytes and compiles one engine, and each engine
takes a minute or two to start. No GPU is needed. What is asserted is what a user would see in
`/metrics` while the engine does what its users make it do.
"""
