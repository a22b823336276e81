"""What each part of the model brings: the same rows, one training for each choice and seed, measured alike.

`cells` says what is trained, `measure` what is found out of it, `report` and `page` tell. A cell that fails stands in
the table with its error; a second run goes on where the first one stopped.
"""
