"""The checks of a release, for maintainers: `make release`. They run in a checkout."""
