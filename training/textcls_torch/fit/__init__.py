"""The reference trainer, against which the compiled one is checked."""
