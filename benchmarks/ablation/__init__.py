"""What each part of the model brings: the same rows, one training for each choice and seed, measured alike.

`cells` says what is trained, `measure` what is found out of it, `report` tells.
"""
