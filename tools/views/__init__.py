"""What people look at: reports, graphs, plans, pictures and tables of a program."""
