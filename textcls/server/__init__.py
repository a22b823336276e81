"""Explained answers over HTTP: `limits`, `schemas`, `problems`, `answers`, then `app.create_app` and `run.serve`.

Nothing is imported here, so that `textcls.server.limits` can be read without FastAPI (`pip install 'textcls[serve]'`).
"""
