// A file of lines, or a table, classified. Read here, sent in pieces; what is refused for its size is sent in smaller ones.
import { misspelt, textOf } from "./columns.mjs";
import { decoded, table as tableOf, textColumns, written } from "./table.mjs";
import { byId, count, make } from "./dom.mjs";
import { named } from "./explain.mjs";
import { named as nodeName, pathOf } from "./tree.mjs";

const MOST_TEXTS = 32;
const MOST_CHARACTERS = 200_000;
const SHOWN = 200;
const TRIES = 5;
const MOST_BYTES = 200_000_000;
const NO_TEXT = [
  ["PK\x03\x04", "an Excel file or a zip archive; save the sheet as CSV"],
  ["PAR1", "a Parquet file"],
  ["\x1f\x8b", "packed; unpack it"],
  ["%PDF", "a PDF"],
];

/** Run `work` on pieces of `texts`, and give each result, or the error of a text that is refused on its own. */
async function inPieces(texts, work, give) {
  for (let from = 0; from < texts.length; ) {
    let to = from;
    for (let size = 0; to < texts.length && to - from < MOST_TEXTS; to++) {
      size += texts[to].reduce((sum, part) => sum + part.length, 0);
      if (size > MOST_CHARACTERS && to > from) break;
    }
    await piece(texts.slice(from, to), work, give);
    from = to;
  }
}

async function piece(texts, work, give) {
  for (let tried = 1; ; tried++) {
    try {
      return give(await work(texts));
    } catch (error) {
      if (error.status === 429 && tried < TRIES) {
        await new Promise((resolve) => setTimeout(resolve, 1000 * (error.again || 1)));
        continue;
      }
      if (error.status !== 413) throw error;
      if (texts.length === 1) return give([{ error: error.message }]);
      const half = texts.length >> 1;
      await piece(texts.slice(0, half), work, give);
      return piece(texts.slice(half), work, give);
    }
  }
}

/** The part of the page that classifies files. `model` gives the model that is asked. */
export function fileOfLines({ name, percent, model, ask, explain }) {
  let running = null;
  // A file of lines is a table of one column. `wrong` says of a row why it cannot be read.
  const lines = { columns: [], rows: [], wrong: [], chosen: null, results: [], file: "", delimiter: ",", marked: false, isTable: false };

  async function read(file) {
    running?.abort();
    Object.assign(lines, { columns: ["text"], rows: [], wrong: [], chosen: [0], results: [], file: file.name, isTable: false });
    byId("columns").hidden = true;
    show();
    try {
      await parse(file);
    } catch (error) {
      return say(error instanceof TypeError ? "This file is not UTF-8 text: save it as UTF-8." : error.message);
    }
    if (lines.isTable) choices();
    if (lines.chosen) await classify();
    else say("Which column holds the text? Choose it above.");
  }

  async function parse(file) {
    if (file.size > MOST_BYTES) throw new Error(`This file has ${count(file.size)} bytes; textcls predict reads files of any size.`);
    const bytes = new Uint8Array(await file.arrayBuffer());
    const beginning = String.fromCharCode(...bytes.subarray(0, 4));
    const [, what] = NO_TEXT.find(([first]) => beginning.startsWith(first)) ?? [];
    if (what) throw new Error(`This file is ${what}, or give it to textcls predict, which reads it.`);
    const { text, marked } = decoded(bytes);
    const suffix = /\.(csv|tsv|tab)$/i.exec(file.name)?.[1].toLowerCase();
    Object.assign(lines, { marked, delimiter: ",", isTable: suffix !== undefined });
    if (lines.isTable) {
      Object.assign(lines, tableOf(text, suffix === "csv" ? "," : "\t"));
      lines.chosen = textColumns(lines.columns, model().text_columns);
    } else {
      const found = text.split(/\r\n|\n|\r/);
      if (found.at(-1) === "") found.pop();
      lines.rows = found.map((line) => [line]);
      if (model().text_columns.length > 1) throw new Error("This model reads several columns: give it a CSV file that has them.");
    }
    if (!lines.rows.length) throw new Error("This file has no rows.");
  }

  /** The columns to choose from: one for each text column of the model. */
  function choices() {
    const trained = model().text_columns;
    const fields = trained.map((column, i) => {
      const options = lines.columns.map((called, at) => make("option", { value: at }, named(called) || `column ${at + 1}`));
      const select = make("select", { id: `column-${i + 1}`, change }, make("option", { value: "" }, "choose"), ...options);
      select.value = lines.chosen?.[i] ?? "";
      const label = make("label", { for: select.id }, trained.length > 1 ? named(column) : "Text column");
      return make("span", {}, label, " ", select);
    });
    function change() {
      const places = fields.map((field) => field.querySelector("select").value);
      lines.chosen = places.includes("") ? null : places.map(Number);
      if (lines.chosen) classify();
    }
    byId("columns").replaceChildren(...fields);
    byId("columns").hidden = false;
  }

  /** What stands in the columns of the model, those beside the text by their names; of a line it is the text. */
  const parts = (row) => [
    ...lines.chosen.map((at) => row[at]),
    ...(model().columns ?? []).map(({ name }) => (lines.isTable ? (row[lines.columns.indexOf(name)] ?? "") : "")),
  ];

  /** The columns beside the text that a table lacks. One that is called nearly so is a mistake. */
  function lacking() {
    const { text_columns: texts, columns: beside = [] } = model();
    const absent = beside.map(({ name }) => name).filter((name) => !lines.columns.includes(name));
    if (!lines.isTable || !absent.length) return "";
    // The columns of the text have been chosen, whatever they are called.
    const there = [...texts, ...lines.columns.filter((_, at) => !lines.chosen.includes(at))];
    const pair = misspelt(there, model());
    if (pair) throw new Error(`The file has the column ${pair[0]}, and the model reads ${pair[1]}: rename it, or add an empty column ${pair[1]} if it is another one.`);
    return ` The file has no column ${absent.join(", ")}, which the model reads: missing in each row.`;
  }

  async function classify() {
    running?.abort();
    let missing;
    try {
      missing = lacking();
    } catch (error) {
      lines.results = [];
      show();
      return say(error.message);
    }
    const { signal } = (running = new AbortController());
    lines.results = [];
    show(true);
    say("");
    const readable = lines.rows.filter((_, i) => !lines.wrong[i]);
    // Rows that cannot be read take their places between the others.
    const fill = () => {
      for (let error; (error = lines.wrong[lines.results.length]); ) lines.results.push({ error });
    };
    try {
      fill();
      await inPieces(
        readable.map(parts),
        (texts) => ask(texts, signal),
        (results) => {
          signal.throwIfAborted();
          for (const result of results) {
            lines.results.push(result);
            fill();
          }
          show(true);
        },
      );
      show();
      const what = lines.isTable ? "row" : "line";
      say(`${count(lines.results.length)} ${what}${lines.results.length === 1 ? "" : "s"} classified.${missing}`);
    } catch (error) {
      if (signal !== running.signal) return;
      show();
      const what = lines.isTable ? "Row" : "Line";
      if (signal.aborted) say(`Stopped after ${count(lines.results.length)} of ${count(lines.rows.length)} ${what.toLowerCase()}s.`);
      else say(`${what} ${count(lines.results.length + 1)}: ${error.message}`);
    }
  }

  function show(going = false) {
    const { rows, results } = lines;
    byId("progress").hidden = byId("stop").hidden = !going;
    byId("bar").value = rows.length ? results.length / rows.length : 0;
    byId("done").textContent = `${count(results.length)} of ${count(rows.length)}`;
    byId("download").hidden = going || !results.length;
    if (!results.length) byId("rows").replaceChildren();
    else table();
  }

  function table() {
    const box = byId("rows");
    if (!box.firstElementChild) {
      const heads = [["line", lines.isTable ? "Row" : "Line"], ["said", "Text"], ["label", many(lines.results) ? "Labels" : "Label"], ["score", "Score"], ["go", ""]];
      const head = make("tr", {}, ...heads.map(([kind, said]) => make("th", { scope: "col", class: kind }, said)));
      const caption = make("p", { class: "note" });
      box.replaceChildren(
        make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Texts and their labels" }, make("table", { class: "lines" }, make("thead", {}, head), make("tbody"))),
        caption,
      );
    }
    const body = box.querySelector("tbody");
    for (let i = body.children.length; i < Math.min(SHOWN, lines.results.length); i++) body.append(row(i));
    const more = lines.results.length - SHOWN;
    const what = lines.isTable ? "rows" : "lines";
    box.lastElementChild.textContent = more > 0 ? `The first ${SHOWN} ${what}; ${count(more)} more are in the download.` : "";
  }

  function row(i) {
    const result = lines.results[i];
    const texts = parts(lines.rows[i]);
    const text = textOf(texts, model());
    const said = result.error
      ? [make("td", { class: "bad", colspan: 3 }, result.error)]
      : [
          make("td", { class: "label" }, ...called(result)),
          make("td", { class: "score" }, ...scored(result)),
          make("td", { class: "go" }, make("button", { type: "button", "aria-label": `Why ${lines.isTable ? "row" : "line"} ${i + 1}`, click: () => explain(texts) }, "Why")),
        ];
    return make(
      "tr",
      {},
      make("td", { class: "line" }, count(i + 1)),
      make("td", { class: "said", dir: "auto" }, make("span", {}, text.length > 300 ? `${text.slice(0, 300)}…` : text)),
      ...said,
    );
  }

  /** The labels of a line, each on a line of its own. */
  function called(result) {
    if (!result.assigned) return [name(result.label), result.decision === "abstain" ? " (abstains)" : ""];
    return result.assigned.length ? result.assigned.map((label) => make("div", {}, name(label))) : ["none (abstains)"];
  }

  function scored(result) {
    if (!result.assigned) return [percent(result.score)];
    return assigned(result).map(({ score }) => make("div", {}, percent(score)));
  }

  function say(text) {
    byId("many-said").textContent = text;
  }

  return { read, stop: () => running?.abort(), download: () => download(lines) };
}

/** Whether the texts may have several labels, or none. */
const many = (results) => results.some((result) => result.assigned);

/** The labels of a text that may have several, with their scores. */
const assigned = (result) => result.labels.filter(({ label }) => result.assigned.includes(label));

/** Save what was answered, as the file was written: its columns, and those that `textcls predict` adds. */
function download({ columns, rows, results, file, delimiter, marked, isTable }) {
  const cells = many(results) ? ofSeveral(results) : (result) => [result.label ?? "", result.score ?? ""];
  const added = many(results) ? ["predicted_labels", "scores", "decision"] : ["predicted_label", "score", "decision"];
  const nodes = ofTree(results);
  added.push(...nodes.columns);
  // As with --prefix of `textcls predict`: two columns of one name can be read by nobody.
  let prefix = "";
  while (added.some((name) => columns.includes(prefix + name))) prefix += "answer_";
  const found = results.map((result, i) => [...rows[i], ...cells(result), result.decision ?? result.error, ...nodes.cells(result)]);
  const content = (isTable && marked ? "\ufeff" : "") + written([[...columns, ...added.map((name) => prefix + name)], ...found], delimiter);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "text/csv" }));
  link.download = `${file.replace(/\.[^.]*$/, "")}_answers.${delimiter === "\t" ? "tsv" : "csv"}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The columns of the deepest sure node, with one a level, where labels are paths of a tree. */
function ofTree(results) {
  const labels = results.find((result) => result.node !== undefined)?.labels ?? [];
  const levels = [...Array(Math.max(0, ...labels.map(({ label }) => pathOf(label).length))).keys()];
  const columns = levels.length ? ["predicted_node", "node_score", ...levels.map((i) => `level_${i + 1}`)] : [];
  const cells = ({ node }) => [nodeName(node?.path ?? []), node?.score ?? "", ...levels.map((i) => node?.path[i] ?? "")];
  return { columns, cells: (result) => (columns.length ? cells(result) : []) };
}

/** Several labels and their scores as two cells: joined by `;`, or as JSON where a label holds one. */
function ofSeveral(results) {
  const labels = new Set(results.flatMap((result) => (result.labels ?? []).map(({ label }) => label)));
  const join = [...labels].some((label) => label.includes(";")) ? JSON.stringify : (values) => values.join(";");
  return (result) => {
    if (result.error) return ["", ""];
    const found = assigned(result);
    return [join(found.map(({ label }) => label)), join(found.map(({ score }) => Number(score.toFixed(6))))];
  };
}
