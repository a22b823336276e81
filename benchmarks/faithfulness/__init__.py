"""Explanations measured by the field's own tests: faithfulness, plausibility, robustness, and what they cost.

`benchmark.explain_benchmark` runs it all. The methods beside our own are imported on use.
"""
