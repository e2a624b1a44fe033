"""What a program must compute: error bounds, oracles, and relations between programs."""
