"""Explanations measured by the field's own tests: faithfulness, plausibility, robustness, and what they cost.

`benchmark.explain_benchmark` runs it all; `textcls explain-benchmark` is its command. What it needs beyond training
comes with the extra `textcls[explain]` and is imported on use.
"""
