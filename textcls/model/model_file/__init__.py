"""Changes to a saved model without training it again: metadata and constants, and nothing else of the file.

`protobuf` reads and writes the wire format of ONNX files, as far as needed; `onnx_file` knows the meaning of the
fields; `thresholds` stores those of `textcls evaluate --store`. This needs no ONNX library.
"""
