"""Training on pods: steps that the compiler makes, beside logs of MLPerf."""
