"""Learning curves: the quality of models of growing shares of the rows, and the likely benefit of more rows.

run.py      trains and judges
showing.py  for a terminal and as a plot
cli.py      `textcls curve`
"""
