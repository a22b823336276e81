"""The scoring heads of saved models: from token sums to probabilities, logits, attention and attributions.

Where a view is `foldable`, its linear head and its seeds have gone into the tables, and a dozen ONNX nodes are left:
`folded_head` writes them down beside the formulas that they must agree with, without PyTorch. `linear_head` is the same
behind a matrix a view, where there are so many labels that folded rows would be much wider. Every other head,
`vector_head`, is traced from the very module that was trained (`textcls_torch.export.tracer`), so that no mixer is
written twice.
`scoring_head` says which of the three a trained model has.

Shapes: B texts, T tokens, V views, C labels, S seeds, D width; G and X as in `textcls_training.export`.
"""
