"""`make conformance`: StableHLO on abele, by the tests of JAX and of StableHLO itself."""
