"""What abele's pages share: a template, a style sheet, and the core of their scripts."""
