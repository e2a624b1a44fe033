"""Links between chips: topologies, which links a flow uses, and what they cost."""
