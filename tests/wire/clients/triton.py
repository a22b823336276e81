"""Ask by `tritonclient`, over HTTP; run in an environment of its own, with the address of the service."""

import json
import sys

import numpy as np
import tritonclient.http as triton

client = triton.InferenceServerClient(sys.argv[1].removeprefix("http://"))
key = {"authorization": "Bearer key-of-the-first-client"}
texts = np.array(["my card was charged twice", "Où est mon colis ? 📦"], object)
found = {
    "live": client.is_server_live(),
    "ready": client.is_server_ready(),
    "model_ready": client.is_model_ready("tickets", headers=key),
    "absent_ready": client.is_model_ready("absent", headers=key),
    "server": client.get_server_metadata(headers=key),
    "model": client.get_model_metadata("tickets", headers=key),
}
for form, binary in (("binary", True), ("json", False)):
    tensor = triton.InferInput("text", [2], "BYTES")
    tensor.set_data_from_numpy(texts, binary_data=binary)
    names = ("label", "score", "probabilities", "labels", "explanation")
    outputs = [triton.InferRequestedOutput(name, binary_data=binary) for name in names]
    # The client writes into the headers that it is given.
    result = client.infer("tickets", [tensor], outputs=outputs, request_id="7", headers=dict(key))
    said = {name: result.as_numpy(name) for name in names}
    found[form] = {
        "id": result.get_response()["id"],
        **{name: [x.decode() if isinstance(x, bytes) else x for x in said[name].tolist()] for name in names},
        "shape": list(said["probabilities"].shape),
    }
tensor = triton.InferInput("text", [2, 1], "BYTES")
tensor.set_data_from_numpy(texts.reshape(2, 1))
result = client.infer("tickets", [tensor], headers=dict(key))
found["column"] = [row[0].decode() for row in result.as_numpy("label").tolist()]
try:
    client.infer("absent", [tensor], headers=dict(key))
except triton.InferenceServerException as error:
    found["refused"] = [error.status(), error.message()]
print(json.dumps(found))  # noqa: T201
