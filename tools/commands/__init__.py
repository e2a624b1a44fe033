"""The commands of abele, a file each; tools/cli.py lists them."""
