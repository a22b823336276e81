"""Ask by `huggingface_hub`'s client; run in an environment of its own, with the address of the service."""

import json
import sys

from huggingface_hub import InferenceClient

address = sys.argv[1]
client = InferenceClient(model=f"{address}/models/tickets", token="key-of-the-first-client")
found = {
    "all": [dict(each) for each in client.text_classification("my card was charged twice")],
    "two": [dict(each) for each in client.text_classification("my card was charged twice", top_k=2)],
    "none": [dict(each) for each in client.text_classification("my card", function_to_apply="none")],
}
try:
    client.text_classification("my card", model=f"{address}/models/absent")
except Exception as error:
    found["refused"] = [{"kind": type(error).__name__, "said": str(error)}]
print(json.dumps(found))  # noqa: T201
