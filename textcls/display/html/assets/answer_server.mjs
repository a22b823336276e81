// Asks the server that served the page.
import { input } from "./columns.mjs";

export const where = "server";
let key = "";

/** Say which models answer. */
export async function models() {
  return (await ask("v1/models")).models;
}

/** Answer texts, each a list of what stands in the columns of the model: the `results` of POST /v1/classify. */
export async function classify(texts, { model, explain, signal }) {
  const body = JSON.stringify({ inputs: texts.map((parts) => input(parts, model)), model: model.name, explain });
  return (await ask("v1/classify", { method: "POST", headers: { "content-type": "application/json" }, body, signal }))
    .results;
}

/** Use a key from now on. It is held in memory alone. */
export function unlock(given) {
  key = given.trim();
}

export const command = {
  name: "Copy as curl",
  of(parts, model) {
    const body = JSON.stringify({ inputs: input(parts, model), model: model.name, explain: true });
    const address = new URL("v1/classify", document.baseURI).href;
    const lock = key ? " \\\n  -H 'authorization: Bearer KEY'" : "";
    return `curl -s ${quoted(address)} -H 'content-type: application/json'${lock} \\\n  -d ${quoted(body)}`;
  },
};

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

async function ask(path, options = {}) {
  const headers = { ...(key && { authorization: `Bearer ${key}` }), ...options.headers };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: is it still running?");
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer) return answer;
  const error = new Error(answer?.error?.message ?? `The server answered ${response.status}.`);
  error.status = response.status;
  error.again = Number(response.headers.get("retry-after")) || 0;
  throw error;
}
