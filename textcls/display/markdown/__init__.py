"""Markdown: a report on a model, and a model card for the Hub.

tables.py    tables, and texts protected from Markdown syntax
report.py    a report
card.py      the card: what the Hub reads, and the report below
"""
