// A textcls model in JavaScript: any ONNX Runtime (onnxruntime-web, onnxruntime-node) runs the file, this gives its
// answers the form that POST /v1/classify has.
import { namesOfCells, read as readRow, told } from "./columns.mjs";
import { read, spans, toCodePoints } from "./tokens.mjs";
import { deepest, treeOf } from "./tree.mjs";

// 4 with columns beside the text, 3 and 2 of several labels a text, 2 of prototypes, else 1.
const FORMAT_VERSION = 4;
const ANSWER = ["probabilities", "attention"];
const EXPLAINED = [...ANSWER, "logits", "contributions", "known"];
// Support rows of a label that are told of.
const SHOWN_SUPPORT = 3;

/** What the file says of itself: labels, bias, temperature, ... ONNX Runtime for JavaScript does not hand it out. */
export function readInfo(bytes) {
  const properties = {};
  for (const [field, value] of fields(bytes)) {
    if (field !== 14) continue; // ModelProto.metadata_props
    const [key, said] = [...fields(value)].map(([, part]) => new TextDecoder().decode(part));
    properties[key] = said;
  }
  if (!properties.textcls) throw new Error("This is no textcls model: the file has no 'textcls' metadata.");
  const info = JSON.parse(properties.textcls);
  if (info.format_version > FORMAT_VERSION) {
    const read = `this page reads up to ${FORMAT_VERSION}`;
    throw new Error(`The file has format version ${info.format_version}, and ${read}: make the page anew.`);
  }
  return info;
}

/** The fields of a protocol buffer that have a length, with their numbers. */
function* fields(bytes) {
  let at = 0;
  const number = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error("The model file is damaged: it ends too early.");
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = number();
    const kind = tag & 7;
    if (kind === 0) number();
    else if (kind === 1) at += 8;
    else if (kind === 5) at += 4;
    else if (kind === 2) {
      const size = number();
      yield [Math.floor(tag / 8), bytes.subarray(at, at + size)];
      at += size;
    } else throw new Error("The model file is damaged.");
  }
}

/** Load a model from its bytes with `ort`, an ONNX Runtime. */
export async function load(ort, bytes) {
  const info = readInfo(bytes);
  const session = await ort.InferenceSession.create(bytes);
  return new Model(ort, session, info);
}

/** A loaded model. */
export class Model {
  constructor(ort, session, info) {
    Object.assign(this, { ort, session, info, tree: treeOf(info) });
  }

  /** Answer texts, or rows as objects where the model reads several columns: the `results` of POST /v1/classify. */
  async classify(given, { explain = false, threshold = null } = {}) {
    if (!Array.isArray(given)) throw new Error("Pass a list of texts, or of rows.");
    if (!given.length) return [];
    const { Tensor } = this.ort;
    const { prototypes, columns } = this.info;
    const rows = given.map((row) => readRow(row, this.info));
    const texts = rows.map(({ text }) => text);
    const cells = rows.flatMap((row) => row.cells);
    const outputs = await this.session.run(
      {
        text: new Tensor("string", texts.map(read), [texts.length]),
        ...(columns && { columns: new Tensor("string", cells, [texts.length, cells.length / texts.length]) }),
      },
      explain ? [...EXPLAINED, ...(prototypes ? ["support"] : []), ...(columns ? ["column_contributions"] : [])] : ANSWER,
    );
    const results = rows.map((row, i) => this.#result(row, i, outputs, explain, threshold ?? this.info.threshold));
    for (const output of Object.values(outputs)) output.dispose?.();
    return results;
  }

  #result({ text, cells }, i, outputs, explain, threshold) {
    const { labels, max_tokens: limit, thresholds } = this.info;
    const scores = row(outputs.probabilities, i);
    const order = scores.map((_, c) => c).sort((a, b) => scores[b] - scores[a] || a - b);
    const places = spans(text, limit + 1);
    // Of several labels each has a threshold, in 32 bits as the scores are.
    const reached = thresholds && order.filter((c) => scores[c] >= Math.fround(threshold ?? thresholds[c]));
    const abstains = reached ? !reached.length : threshold !== null && scores[order[0]] < threshold;
    const result = {
      label: labels[order[0]],
      score: scores[order[0]],
      labels: order.map((c) => ({ label: labels[c], score: scores[c] })),
      decision: abstains ? "abstain" : "accept",
      truncated: places.length > limit,
      ...(reached && { assigned: reached.map((c) => labels[c]) }),
      ...(this.tree && { node: deepest(this.tree, scores, threshold) }),
    };
    return explain ? { ...result, ...this.#explanation(text, cells, i, outputs, order, places.slice(0, limit)) } : result;
  }

  #explanation(text, cells, i, outputs, order, places) {
    const { labels, bias } = this.info;
    const logits = row(outputs.logits, i);
    const attention = row(outputs.attention, i);
    const known = row(outputs.known, i);
    const contributions = row(outputs.contributions, i);
    const named = (values) => Object.fromEntries(order.map((c) => [labels[c], values[c]]));
    const sums = bias.slice();
    const beside = outputs.column_contributions ? row(outputs.column_contributions, i) : [];
    for (const added of [contributions, beside]) added.forEach((value, at) => (sums[at % labels.length] += value));
    const shown = told(cells, this.info);
    const points = toCodePoints(text, places);
    return {
      runner_up: labels[order[1]] ?? null,
      bias: named(bias),
      logits: named(logits),
      completeness_error: Math.max(...sums.map((sum, c) => Math.abs(sum - logits[c]))),
      tokens: places.map(([start, end], t) => ({
        text: text.slice(start, end),
        start: points[t][0],
        end: points[t][1],
        attention: attention[t],
        contributions: named(contributions.slice(t * labels.length, (t + 1) * labels.length)),
        known: !!known[t],
      })),
      ...(cells.length && {
        columns: namesOfCells(this.info).map((name, k) => ({
          name,
          value: shown[k],
          contributions: named(beside.slice(k * labels.length, (k + 1) * labels.length)),
        })),
      }),
      ...(outputs.support && { support: this.#support(row(outputs.support, i), order[0]) }),
    };
  }

  /** What a label is made of for a text, the most weight first. */
  #support(weights, label) {
    const { row: numbers, rows, taught, texts } = this.info.prototypes.support[label];
    const first = label * (weights.length / this.info.labels.length);
    const found = numbers.map((number, k) => ({
      weight: weights[first + k],
      row: number,
      rows: rows[k],
      taught: k >= numbers.length - taught,
      ...(texts && { text: texts[k] }),
    }));
    return found.sort((a, b) => b.weight - a.weight).slice(0, SHOWN_SUPPORT);
  }
}

/** The numbers of text `i` of an output, the first dimension of which is the batch. */
function row(output, i) {
  const size = output.dims.slice(1).reduce((a, b) => a * b, 1);
  return Array.from(output.data.subarray(i * size, (i + 1) * size));
}
