"""What abele's pages share: a style sheet, the core of their scripts, and how data is packed."""
