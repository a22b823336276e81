"""The commands that train: options in, one call, something shown."""
