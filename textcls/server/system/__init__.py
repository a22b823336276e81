"""Interfaces to the operating system: `memory`, `signals`, `open_files`, and the workers' folder (`shared_folder`)."""
