"""Knowledge distillation: a teacher labels unlabelled texts, and a student learns from labels and its answers together.

`teachers` defines what a teacher is, and contains all three: a sentence encoder under a linear head (`encoder`,
`linear_head`), the model itself, and given probabilities. `distil` asks each teacher, fits the students, and lets
held-out labelled rows decide whether the answers are used; `report` has the results on these rows.

A teacher for a train-valid split only knows the labels of its training rows: it is given no others.
"""
