"""Analyses: facts about a program that passes need before they change it."""
