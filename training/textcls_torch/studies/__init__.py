"""Many trainings or explanations, measured side by side: `textcls ablate` and `textcls explain-benchmark`."""
