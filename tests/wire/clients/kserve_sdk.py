"""Ask by KServe's SDK, both versions; run in an environment of its own, with the address of the service."""

import asyncio
import json
import sys
from typing import Any

from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig

TEXT = "my card was charged twice"
KEY = {"authorization": "Bearer key-of-the-first-client"}


async def ask(address: str) -> dict[str, Any]:
    """Return what the service says to each call."""
    first, second = (InferenceRESTClient(RESTConfig(protocol=version)) for version in ("v1", "v2"))
    tensor = InferInput(name="text", shape=[1], datatype="BYTES", data=[TEXT])
    answer = await second.infer(
        address, InferRequest(model_name="tickets", infer_inputs=[tensor]), model_name="tickets", headers=KEY
    )
    found = {
        "v1_live": await first.is_server_live(address),
        "v1_ready": await first.is_model_ready(address, "tickets", headers=KEY),
        "predict": await first.infer(address, {"instances": [TEXT]}, model_name="tickets", headers=KEY),
        "explain": await first.explain(address, "tickets", {"instances": [TEXT]}, headers=KEY),
        "v2_live": await second.is_server_live(address),
        "v2_ready": await second.is_server_ready(address),
        "v2_model_ready": await second.is_model_ready(address, "tickets", headers=KEY),
        "infer": {output.name: output.data for output in answer.outputs},
    }
    try:
        await first.infer(address, {"instances": []}, model_name="tickets", headers=KEY)
    except Exception as error:
        found["refused"] = str(error)
    return found


print(json.dumps(asyncio.run(ask(sys.argv[1]))))  # noqa: T201
