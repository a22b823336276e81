"""Answers of a language model to texts without labels: asked once, kept, and measured on labelled rows first.

`prompt` defines what is asked, `endpoint` asks it, `probabilities` reads the answer, `journal` keeps it, `annotate`
goes through the texts, and `panel` combines the answers of several models.
"""
