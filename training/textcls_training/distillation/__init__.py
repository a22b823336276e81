"""Knowledge distillation: a teacher answers unlabelled texts, and a student learns from labels and answers together.

`teachers` says what a teacher is, and has the three that there are: a sentence encoder under a linear head (`encoder`,
`linear_head`), the model itself, and probabilities from elsewhere. `distil` lets each answer, fits the students, and
lets held-out labelled rows decide whether the answers are used; `report` says what these rows say of all.

A teacher of a train-valid split knows the labels of its training rows alone: it is given no others.
"""
