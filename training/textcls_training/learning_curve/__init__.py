"""Learning curves: how good models of growing shares of the rows are, and what more rows would bring.

run.py      trains and judges
showing.py  for a terminal and as a plot
cli.py      `textcls curve`
"""
