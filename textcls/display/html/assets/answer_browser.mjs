// Runs the model in this browser, with onnxruntime-web. Nothing leaves the machine.
import * as ort from "./ort/ort.wasm.min.mjs";
import { input, textOf } from "./columns.mjs";
import { load } from "./model.mjs";

export const where = "browser";
const NAME = "model";
let model;

/** Load the model, and say what it is. */
export async function models() {
  ort.env.wasm.wasmPaths = new URL("./ort/", import.meta.url).href;
  // More threads need headers that static hosts do not send, and one text is faster with one.
  ort.env.wasm.numThreads = 1;
  const response = await fetch("model.onnx");
  if (!response.ok) throw new Error(`model.onnx cannot be fetched: the host answers ${response.status}.`);
  model = await load(ort, new Uint8Array(await response.arrayBuffer()));
  const { labels, task, max_tokens, threshold, text_columns, columns, example } = model.info;
  const byLabel = (values) => values && Object.fromEntries(labels.map((label, c) => [label, values[c]]));
  const [scale, shift, thresholds] = ["scale", "shift", "thresholds"].map((name) => byLabel(model.info[name]));
  return [{ name: NAME, default: true, labels, task, max_tokens, threshold, text_columns, columns, example, scale, shift, thresholds }];
}

/** Answer texts, each a list of what stands in the columns of the model: the `results` of POST /v1/classify. */
export async function classify(texts, { explain, signal }) {
  // Let the page draw, and notice a click on Stop.
  await new Promise((resolve) => setTimeout(resolve));
  signal?.throwIfAborted();
  return model.classify(texts.map((parts) => input(parts, model.info)), { explain });
}

/** There is nothing to unlock here. */
export function unlock() {}

export const command = {
  name: "Copy as command",
  of(parts, described) {
    const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
    const beside = (described.columns ?? []).map(({ name }, i) => [name, parts[described.text_columns.length + i]]);
    const given = beside.filter(([, value]) => value).map(([name, value]) => ` --column ${quoted(`${name}=${value}`)}`);
    return `textcls explain model.onnx${given.join("")} -- ${quoted(textOf(parts, described))}`;
  },
};
