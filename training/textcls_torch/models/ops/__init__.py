"""The maths of the model as pure functions of tensors: `attention` of the seeds, `mixing` of the mixing layers,
`prototypes` in place of a linear head.
"""
