"""What is changed in a saved model without training it again: metadata and constants, and nothing else of the file.

`protobuf` reads and writes the wire format of which an ONNX file is made, as far as that needs; `onnx_file` knows which
fields hold what; `thresholds` stores those of `textcls evaluate --store`. So this needs no ONNX library.
"""
