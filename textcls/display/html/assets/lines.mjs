// A file of lines, classified into a table. Read here, sent in pieces; what is refused for its size is sent in smaller ones.

const MOST_TEXTS = 32;
const MOST_CHARACTERS = 200_000;
const SHOWN = 200;
const TRIES = 5;
const byId = (id) => document.getElementById(id);

/** Run `work` on pieces of `texts`, and give each result, or the error of a text that is refused on its own. */
async function inPieces(texts, work, give) {
  for (let from = 0; from < texts.length; ) {
    let to = from;
    for (let size = 0; to < texts.length && to - from < MOST_TEXTS; to++) {
      size += texts[to].length;
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

/** The part of the page that classifies files. */
export function fileOfLines({ make, name, percent, count, ask, explain }) {
  let running = null;
  const lines = { texts: [], results: [], file: "", stop: () => running?.abort(), read };

  async function read(file) {
    running?.abort();
    const { signal } = (running = new AbortController());
    Object.assign(lines, { texts: [], results: [], file: file.name });
    show();
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      lines.texts = text.split(/\r\n|\n|\r/);
      if (lines.texts.at(-1) === "") lines.texts.pop();
      await inPieces(
        lines.texts,
        (texts) => ask(texts, signal),
        (results) => {
          signal.throwIfAborted();
          lines.results.push(...results);
          show(true);
        },
      );
      show();
      say(`${count(lines.results.length)} lines classified.`);
    } catch (error) {
      if (signal !== running.signal) return;
      show();
      if (signal.aborted) say(`Stopped after ${count(lines.results.length)} of ${count(lines.texts.length)} lines.`);
      else if (error instanceof TypeError) say("This file is not UTF-8 text: save it as UTF-8.");
      else say(`Line ${count(lines.results.length + 1)}: ${error.message}`);
    }
  }

  function show(going = false) {
    const { texts, results } = lines;
    byId("progress").hidden = byId("stop").hidden = !going;
    byId("bar").value = texts.length ? results.length / texts.length : 0;
    byId("done").textContent = `${count(results.length)} of ${count(texts.length)}`;
    byId("download").hidden = going || !results.length;
    if (!results.length) byId("rows").replaceChildren();
    else table();
  }

  function table() {
    const box = byId("rows");
    if (!box.firstElementChild) {
      const heads = [["line", "Line"], ["said", "Text"], ["label", many(lines.results) ? "Labels" : "Label"], ["score", "Score"], ["go", ""]];
      const head = make("tr", {}, ...heads.map(([kind, said]) => make("th", { scope: "col", class: kind }, said)));
      const caption = make("p", { class: "note" });
      box.replaceChildren(
        make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Lines and their labels" }, make("table", { class: "lines" }, make("thead", {}, head), make("tbody"))),
        caption,
      );
    }
    const body = box.querySelector("tbody");
    for (let i = body.children.length; i < Math.min(SHOWN, lines.results.length); i++) body.append(row(i));
    const more = lines.results.length - SHOWN;
    box.lastElementChild.textContent = more > 0 ? `The first ${SHOWN} lines; ${count(more)} more are in the download.` : "";
  }

  function row(i) {
    const result = lines.results[i];
    const text = lines.texts[i];
    const said = result.error
      ? [make("td", { class: "bad", colspan: 3 }, result.error)]
      : [
          make("td", { class: "label" }, ...called(result)),
          make("td", { class: "score" }, ...scored(result)),
          make("td", { class: "go" }, make("button", { type: "button", "aria-label": `Why line ${i + 1}`, click: () => explain(text) }, "Why")),
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

  return lines;
}

/** Whether the texts may have several labels, or none. */
const many = (results) => results.some((result) => result.assigned);

/** The labels of a text that may have several, with their scores. */
const assigned = (result) => result.labels.filter(({ label }) => result.assigned.includes(label));

/** Save what was answered: the columns of `textcls predict`. */
export function download({ texts, results, file }) {
  const cell = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const cells = many(results) ? ofSeveral(results) : (result) => [result.label ?? "", result.score ?? ""];
  const rows = results.map((result, i) =>
    [texts[i], ...cells(result), result.decision ?? result.error].map((value) => cell(String(value))).join(","),
  );
  const head = many(results) ? "text,predicted_labels,scores,decision" : "text,predicted_label,score,decision";
  const content = `${[head, ...rows].join("\r\n")}\r\n`;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "text/csv" }));
  link.download = `${file.replace(/\.[^.]*$/, "")}_answers.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
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
