"""Users' extensions: what they may define, how abele finds it, and how it is registered."""
