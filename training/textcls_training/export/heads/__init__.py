"""The scoring heads of saved models: from token sums to probabilities, logits, attention and attributions.

If a view is `foldable`, its linear head and its seeds are folded into the tables, and a dozen ONNX nodes are left:
`folded_head` writes them next to the formulas that they must agree with, without PyTorch. `linear_head` is the same
after one matrix per view, for so many labels that folded rows would be much wider. Every other head, `vector_head`, is
traced from the trained module itself (`textcls_torch.export.tracer`), so that no mixer is written twice. `scoring_head`
selects one of the three for a trained model.

Shapes: B texts, T tokens, V views, C labels, S seeds, D width; G and X as in `textcls_training.export`.
"""
