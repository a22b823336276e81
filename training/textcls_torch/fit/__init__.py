"""The reference trainer, to which the compiled one is held."""
