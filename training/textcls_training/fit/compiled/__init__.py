"""The compiled trainer: the default model as loops compiled by Numba, without PyTorch.

It is for hashed views, and a view by vectors, that nothing mixes, under `norm` or softmax attention, with hard or soft
targets, one label a text or several, and weights of rows and labels. `arrays` names what the loops work on, `step` has
the loops, `head` those of head and loss, `learner` is one view, `trainer` all of them. The definition is the reference,
`textcls_torch.fit.trainer`; tests hold gradients, steps and whole trainings of the two together.
"""
