"""Views of programs: graphs, plans, pictures and tables."""
