"""Markdown: a report on a model, and a model card for the Hub.

tables.py    tables, and texts that no sign of Markdown changes
report.py    a report
card.py      the card: what the Hub reads, and the report below
"""
