// The page. Texts and labels enter the document as text nodes and titles alone, never as markup.
import { classify, command, models, unlock, where } from "./answer.mjs";
import { textOf } from "./columns.mjs";
import { byId, count, make } from "./dom.mjs";
import { attribution, level, named, several, visible } from "./explain.mjs";
import { fileOfLines } from "./lines.mjs";
import { fromCodePoints } from "./tokens.mjs";
import { UNITS, grouped, passages, readingUnit } from "./units.mjs";

const SHOWN_LABELS = 8;
const SHOWN_TOKENS = 20;
// Beyond these a browser would need seconds to lay them out.
const MOST_ROWS = 2000;
const MOST_UNREAD = 2000;
// A longer text is answered when it is asked for, not at every key.
const MOST_LIVE = 5000;
// Who types is not interrupted by a screen reader.
const QUIET_MILLISECONDS = 1000;

const state = { models: [], model: null, text: "", result: null, label: null, against: null, unit: "token", chosenUnit: null, asking: null };
// The answer as it is shown: its tokens are units, if these are chosen.
let shownResult = null;
// What is typed: whether it has changed since it was asked last, and what will be said of it.
const typed = { again: false, going: false, saying: 0 };

const percent = (share) => `${(100 * share).toFixed(1)}%`;
const signed = (value) => (value < 0 || Object.is(value, -0) ? "−" : "+") + Math.abs(value).toFixed(3);
const name = (text) => make("bdi", {}, named(text));
const wide = (share) => `${(100 * share).toFixed(1)}%`;
/** A bar of this share of the room; with a mark at a threshold, if there is one. */
const bar = (share, threshold = null) => {
  const track = make("i");
  track.style.width = wide(share);
  if (threshold === null) return make("span", { class: "track", "aria-hidden": "true" }, track);
  const mark = make("b");
  mark.style.left = wide(threshold);
  return make("span", { class: "track", "aria-hidden": "true" }, track, mark);
};

// Models

async function start() {
  say("");
  try {
    state.models = await models();
  } catch (error) {
    byId("about").textContent = "";
    byId("locked").hidden = !(error.status === 401);
    if (error.status === 401) byId("key").focus();
    problem(error.status === 401 ? "This service needs a key." : error.message);
    return;
  }
  problem("");
  byId("locked").hidden = true;
  const chosen = state.models.find((model) => model.name === state.model?.name);
  state.model = chosen ?? state.models.find((model) => model.default) ?? state.models[0];
  byId("model").replaceChildren(...state.models.map((model) => make("option", { value: model.name }, model.name)));
  byId("model").value = state.model.name;
  byId("choice").hidden = state.models.length < 2;
  for (const id of ["classify", "copy"]) byId(id).disabled = false;
  describe();
  begin();
}

/** Begin with the example of the model, unless something is typed already. */
function begin() {
  const { example } = state.model;
  if (!example || parts().join("")) return;
  const found = example.split("\n");
  const texts = boxes().slice(0, state.model.text_columns.length);
  const last = texts.length - 1;
  texts.forEach((box, i) => (box.value = i < last ? (found[i] ?? "") : found.slice(last).join("\n")));
  ask({ live: true });
}

/** The fields of a row: one for each text column of the training, then one for each column beside the text. */
const boxes = () => [...byId("fields").querySelectorAll("textarea, input")];

/** What stands in them. */
const parts = () => boxes().map((box) => box.value);

/** Write a text into them. */
function fill(texts) {
  boxes().forEach((box, i) => (box.value = texts[i] ?? ""));
}

// What was typed for a column of any model, by its name; for the first one of the text, however it is called, under "".
const kept = new Map();

/** A field for a column beside the text, and what it is called. */
function fieldBeside({ name: called, kind, values, knots }, i) {
  const id = `column-beside-${i + 1}`;
  // Between two days there may be a knot, but none before the first or after the last.
  const days = [knots.at(0), knots.at(-1)].every(Number.isInteger);
  const kinds = { category: { list: `${id}-values` }, number: { inputmode: "decimal" }, date: { type: days ? "date" : "datetime-local" } };
  const options = kind === "category" ? [make("datalist", { id: `${id}-values` }, ...values.map((value) => make("option", { value })))] : [];
  const box = make("input", { id, autocomplete: "off", ...kinds[kind] });
  return make("span", { class: "field" }, make("label", { for: id }, named(called)), box, ...options);
}

/** Make a field for each text column of the model, and for each column beside the text. */
function fields() {
  const { text_columns: columns, columns: beside = [] } = state.model;
  const names = ["", ...columns.slice(1), ...beside.map(({ name }) => name)];
  for (const { dataset, value } of boxes()) kept.set(dataset.column ?? "", value);
  const box = byId("text");
  box.rows = columns.length > 1 ? 2 : 4;
  const label = byId("fields").firstElementChild;
  label.textContent = columns.length > 1 ? named(columns[0]) : "Text to classify";
  const more = columns.slice(1).flatMap((name, i) => [
    make("label", { for: `text-${i + 2}` }, named(name)),
    make("textarea", { id: `text-${i + 2}`, rows: i + 2 < columns.length ? 2 : 4, dir: "auto", spellcheck: "false" }),
  ]);
  const row = beside.length ? [make("div", { class: "columns" }, ...beside.map(fieldBeside))] : [];
  byId("fields").replaceChildren(label, box, ...more, ...row);
  fill(names.map((name) => kept.get(name)));
  boxes().forEach((box, i) => (box.dataset.column = names[i]));
}

function describe() {
  const { labels, max_tokens: most, name: called, task } = state.model;
  const many = task === "multi-label" ? ", several a text or none" : "";
  const who = where === "browser" ? "runs in this browser; nothing is sent" : called;
  byId("about").replaceChildren(
    make("bdi", {}, who),
    ` · ${count(labels.length)} labels${many} · reads up to ${count(most)} tokens per text`,
  );
  fields();
  byId("hint").replaceChildren(make("kbd", {}, "Ctrl"), " ", make("kbd", {}, "Enter"), " classifies at once");
  document.title = where === "browser" ? "textcls" : `${called} - textcls`;
}

// Asking

/** Ask about what is typed, when the answer before has come: a busy server is asked less often. */
async function askAsTyped() {
  clearTimeout(typed.saying);
  if (!state.model || parts().join("").length > MOST_LIVE) return;
  if (!parts().join("").trim()) {
    state.asking?.abort();
    Object.assign(state, { result: null });
    byId("answer").hidden = true;
    return problem("");
  }
  typed.again = typed.going;
  if (typed.going) return;
  typed.going = true;
  try {
    await ask({ live: true });
  } finally {
    typed.going = false;
  }
  if (typed.again) await askAsTyped();
}

async function ask({ live = false } = {}) {
  const given = parts();
  const text = textOf(given, state.model);
  state.asking?.abort();
  const asking = (state.asking = new AbortController());
  clearTimeout(typed.saying);
  if (!live) {
    say("Classifying …");
    problem("");
  }
  try {
    let result;
    let missing = "";
    try {
      [result] = await classify([given], { model: state.model, explain: true, signal: asking.signal });
    } catch (error) {
      if (error.status !== 413 || !/max_explained/.test(error.message)) throw error;
      // Too much to explain; its scores can be had.
      missing = error.message;
      [result] = await classify([given], { model: state.model, explain: false, signal: asking.signal });
    }
    if (asking.signal.aborted) return;
    Object.assign(state, { text, result, label: result.assigned?.[0] ?? result.label, against: null });
    byId("answer").hidden = false;
    show();
    problem(missing);
    const said = `${assigned(result).map(({ label, score }) => `${named(label)}, ${percent(score)}`).join("; ") || nothing(result)}.`;
    if (live) typed.saying = setTimeout(() => say(said), QUIET_MILLISECONDS);
    else say(said);
  } catch (error) {
    if (asking.signal.aborted) return;
    if (live && error.status === 429) {
      typed.again = true;
      return new Promise((resolve) => setTimeout(resolve, 1000 * (error.again || 1)));
    }
    say("");
    problem(error.message);
    // What is shown would be taken for the answer to what was refused.
    byId("answer").hidden = true;
    if (error.status === 401) byId("locked").hidden = false;
  }
}

/** Tell a screen reader; whoever sees the page sees it anyway. */
function say(...said) {
  byId("said").replaceChildren(...said);
  byId("said").classList.add("spoken");
}

/** Tell everybody. */
function tell(...said) {
  say(...said);
  byId("said").classList.remove("spoken");
}

function problem(text) {
  byId("problem").textContent = text;
  byId("problem").hidden = !text;
}

// The answer

/** The labels of the text with their scores: the best one, or of several those that reach their thresholds. */
function assigned(result) {
  return several(result) ? result.labels.filter(({ label }) => result.assigned.includes(label)) : result.labels.slice(0, 1);
}

/** The score from which on a label is assigned, where a text may have several. */
const threshold = (label) => state.model.threshold ?? state.model.thresholds[label];

/** The same score as a logit, to which the contributions add up. */
function logitOf(label) {
  const score = threshold(label);
  return (Math.log(score / (1 - score)) - state.model.shift[label]) / state.model.scale[label];
}

/** What is said where no label is assigned. */
function nothing(result) {
  const short = ({ label, score }) => threshold(label) - score;
  const { label, score } = result.labels.reduce((best, each) => (short(each) < short(best) ? each : best));
  return `No label reaches its threshold; the nearest is ${named(label)}, with ${percent(score)} of ${percent(threshold(label))}`;
}

function abstention(result) {
  if (several(result)) return `It abstains. ${nothing(result)}.`;
  return `It abstains: the best score is below the model's threshold of ${percent(state.model.threshold)}.`;
}

function show() {
  const { result } = state;
  const found = assigned(result).flatMap(({ label, score }, place) => [
    ...(place ? [make("span", { class: "score" }, " · ")] : []),
    name(label),
    " ",
    make("span", { class: "score" }, percent(score)),
  ]);
  byId("verdict").replaceChildren(...(found.length ? found : ["No label"]));
  const remarks = [];
  if (result.decision === "abstain") remarks.push(abstention(result));
  const node = result.node?.path.join(" > ");
  if (result.node === null) remarks.push("No node of the tree is sure.");
  else if (node && (node !== result.label || result.decision === "abstain")) remarks.push(`Only “${node}” is sure, at ${percent(result.node.score)}.`);
  if (result.truncated) remarks.push("The text is longer than the model reads; the rest was cut.");
  if (result.tokens?.length === 0) {
    const what = result.columns?.length ? "the bias and the columns beside the text" : "the bias alone";
    remarks.push(`The text has no tokens: the answer is ${what}.`);
  }
  byId("remarks").replaceChildren(...remarks.map((remark) => make("p", { class: "remark" }, remark)));
  showScores();
  byId("why").hidden = !result.tokens?.length;
  if (result.tokens?.length) showWhy();
}

function showScores() {
  const { result } = state;
  const many = several(result);
  const best = new Set(assigned(result).map(({ label }) => label));
  const rows = result.labels.map(({ label, score }) =>
    make(
      "label",
      { class: best.has(label) ? "score-row best" : "score-row" },
      make("input", {
        type: "radio",
        name: "label",
        value: label,
        checked: label === state.label,
        change: () => {
          state.label = label;
          if (state.against === label) state.against = null;
          showWhy();
        },
      }),
      make("span", { class: "called" }, name(label)),
      bar(score, many ? threshold(label) : null),
      make("span", { class: "of" }, percent(score)),
      ...(many ? [make("span", { class: "limit" }, `${best.has(label) ? "≥" : "<"} ${percent(threshold(label))}`)] : []),
    ),
  );
  const fieldset = byId("scores");
  fieldset.classList.toggle("several", many);
  const what = many ? "Scores and thresholds of the labels, each by itself" : "Scores";
  fieldset.firstElementChild.textContent = `${what}; choose the label to explain`;
  fieldset.replaceChildren(fieldset.firstElementChild, ...rows.slice(0, SHOWN_LABELS));
  if (rows.length > SHOWN_LABELS) {
    const summary = make("summary", {}, `${count(rows.length - SHOWN_LABELS)} more labels`);
    fieldset.append(make("details", {}, summary, ...rows.slice(SHOWN_LABELS)));
  }
}

function showWhy() {
  const { result, label, against, text } = state;
  if (!result.tokens?.length) return;
  const many = several(result);
  const not = many && against === null && !result.assigned.includes(label) ? "not " : "";
  byId("why-label").replaceChildren(`Why ${not}`, name(label), ...(against === null ? [] : [" and not ", name(against)]));
  const others = result.labels.map((each) => each.label).filter((other) => other !== label);
  byId("against").replaceChildren(
    make("option", { value: "" }, many ? "nothing" : "all others"),
    ...others.map((other, i) => make("option", { value: i + 1 }, named(other))),
  );
  byId("against").selectedIndex = against === null ? 0 : others.indexOf(against) + 1;
  byId("against").onchange = (event) => {
    const chosen = event.target.selectedIndex;
    state.against = chosen ? others[chosen - 1] : null;
    showWhy();
  };
  hideTip();
  const tokens = fromCodePoints(text, result.tokens.map((token) => [token.start, token.end]));
  state.unit = state.chosenUnit ?? readingUnit(text);
  shownResult = grouped(result, text, tokens, state.unit);
  byId("unit").value = state.unit;
  const seen = attribution(shownResult, label, against);
  // Beside what is explained, the numbers of the label that comes closest to it, if they compete.
  const other = against ?? (many ? null : (others[0] ?? null));
  const places = fromCodePoints(text, shownResult.tokens.map((token) => [token.start, token.end]));
  showTokens(seen, other, places);
  showLegend(seen);
  showTables(seen, other);
  showNotes(seen);
}

// The text and its tokens

function showTokens(seen, other, places) {
  const { text } = state;
  const result = shownResult;
  const shown = visible(text);
  const token = (i) => {
    const [start, end] = places[i];
    // By the mean, whatever the length of a unit.
    const tint = level(seen.means[i], seen.largestMean);
    const kinds = ["token", tint && `${tint > 0 ? "p" : "n"}${Math.abs(tint)}`, !result.tokens[i].known && "unknown"];
    return make("span", { class: kinds.filter(Boolean).join(" "), tabindex: -1, "data-token": i }, shown.slice(start, end));
  };
  const pieces = (from, to) => {
    const found = [];
    for (let i = from; i < to; i++) found.push(i > from || !i ? shown.slice(i ? places[i - 1][1] : 0, places[i][0]) : "", token(i));
    if (to === places.length) found.push(...unread(shown.slice(places.at(-1)[1])));
    return found;
  };
  const box = byId("tinted");
  const all = places.length;
  const first = box.dataset.open === "1" ? [] : passages(text, places, seen.values, state.unit);
  if (!first.length) {
    box.replaceChildren(...pieces(0, all));
  } else {
    const unfold = () => {
      box.dataset.open = "1";
      showTokens(seen, other, places);
      box.querySelector(".token").focus();
    };
    const which = first.flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i));
    const share = percent(seen.share(which));
    const said = `The sentences that decide: ${count(which.length)} of ${count(all)} ${state.unit}s, ${share} of the evidence.`;
    const button = make("button", { type: "button", click: unfold }, "Show the whole text");
    const cut = (whether) => (whether ? "…" : "");
    const parts = first.map(([from, to]) => make("p", { dir: "auto" }, cut(from), ...pieces(from, to), cut(to < all)));
    box.replaceChildren(...parts, make("div", { class: "row" }, said, " ", button));
  }
  box.querySelector(".token").tabIndex = 0;
  box.numbers = (i) => numbers(seen, other, i);
}

/** What stands behind the last token that was read: white space, or what was cut. */
function unread(text) {
  if (!text.trim()) return [text];
  const more = text.length > MOST_UNREAD ? `… (${count(text.length - MOST_UNREAD)} more characters)` : "";
  return [make("span", { class: "unread", title: "not read by the model" }, text.slice(0, MOST_UNREAD) + more)];
}

function numbers(seen, other, i) {
  const token = shownResult.tokens[i];
  const line = (what, value) => make("span", {}, make("em", {}, what, " "), value);
  return [
    make("b", {}, name(token.text)),
    line(seen.against === null ? "evidence" : "difference", signed(seen.values[i])),
    ...(seen.alone ? [] : [line(name(seen.label), signed(token.contributions[seen.label]))]),
    ...(other === null ? [] : [line(name(other), signed(token.contributions[other]))]),
    ...(token.size ? [line("tokens", count(token.size)), line("a token", signed(seen.means[i]))] : []),
    ...(token.size ? [] : [line("attention", token.attention.toFixed(3))]),
    ...(token.known ? [] : [make("em", {}, "Unknown to the model: never seen in training, or left out for size. Only its pieces are read.")]),
  ];
}

function showTip(span) {
  const tip = byId("tip");
  tip.replaceChildren(...byId("tinted").numbers(Number(span.dataset.token)));
  tip.hidden = false;
  span.setAttribute("aria-describedby", "tip");
  const box = span.getClientRects()[0] ?? span.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left + box.width / 2 - size.width / 2, document.documentElement.clientWidth - size.width - 8));
  const above = box.top - size.height - 8;
  // From the containing block, whatever its place.
  const origin = tip.offsetParent?.getBoundingClientRect() ?? { left: -scrollX, top: -scrollY };
  tip.style.left = `${left - origin.left}px`;
  tip.style.top = `${(above > 4 ? above : box.bottom + 8) - origin.top}px`;
}

function hideTip() {
  byId("tip").hidden = true;
  for (const span of document.querySelectorAll(".token[aria-describedby]")) span.removeAttribute("aria-describedby");
}

/** One stop of the Tab key for the whole text; arrows walk from token to token. */
function walk(event) {
  const box = byId("tinted");
  const here = event.target.closest(".token");
  if (!here) return;
  if (event.key === "Escape") return hideTip();
  // Of a long text only some are shown.
  const tokens = [...box.getElementsByClassName("token")];
  const at = tokens.indexOf(here);
  const rightToLeft = getComputedStyle(box).direction === "rtl" ? -1 : 1;
  const to = { ArrowRight: at + rightToLeft, ArrowLeft: at - rightToLeft, Home: 0, End: tokens.length - 1 }[event.key];
  const next = tokens[to];
  if (!next) return;
  event.preventDefault();
  here.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function showLegend(seen) {
  const item = (kind, ...said) => make("span", {}, make("b", { class: kind }, state.unit === "token" ? "word" : state.unit), " ", ...said);
  const against = seen.against === null ? ["against it"] : ["for ", name(seen.against)];
  const unknown = shownResult.tokens.some((token) => !token.known);
  byId("legend").replaceChildren(
    make(
      "p",
      { class: "legend" },
      item("p7", "speaks for ", name(seen.label)),
      item("n7", "speaks ", ...against),
      ...(unknown ? [item("unknown", "unknown to the model: never seen in training, or left out for size")] : []),
    ),
  );
}

// The table of tokens

function showTables(seen, other) {
  const all = seen.values.length;
  const found = [table(seen, other, seen.order.slice(0, SHOWN_TOKENS))];
  if (all > SHOWN_TOKENS) {
    const every = seen.order.slice(0, MOST_ROWS).sort((a, b) => a - b);
    const what = all > MOST_ROWS ? `The ${count(MOST_ROWS)} strongest of ${count(all)}` : `All ${count(all)}`;
    const fold = make("details", {}, make("summary", {}, `${what} ${state.unit}s in reading order`));
    fold.addEventListener("toggle", () => fold.children.length === 1 && fold.append(table(seen, other, every)));
    found.push(fold);
  }
  byId("tables").replaceChildren(...found);
}

function table(seen, other, order) {
  const result = shownResult;
  const columns = seen.alone ? [] : [seen.label, ...(other === null ? [] : [other])];
  const kind = seen.against === null ? "evidence" : "difference";
  const cells = (values) => values.map((value, i) => make("td", { class: i > 1 && "beside" }, signed(value)));
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, state.unit),
    make("th", { scope: "col", colspan: 2 }, kind),
    ...columns.map((label, i) => make("th", { scope: "col", class: i && "beside" }, name(label))),
    make("th", { scope: "col", class: "beside" }, state.unit === "token" ? "attention" : "a token"),
  );
  const rows = order.map((i) => {
    const token = result.tokens[i];
    const share = seen.values[i] / seen.largest;
    const side = share >= 0 ? "left" : "right";
    const length = make("i", { class: `${share >= 0 ? "p" : "n"} ${side}` });
    length.style[side] = "50%";
    length.style.width = `${(50 * Math.abs(share)).toFixed(1)}%`;
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, token.known ? name(token.text) : make("span", { class: "unknown", title: "unknown to the model" }, name(token.text))),
      make("td", { class: "bar", "aria-hidden": "true" }, length),
      ...cells([seen.values[i], ...columns.map((label) => token.contributions[label])]),
      make("td", { class: "beside" }, token.size ? signed(seen.means[i]) : token.attention.toFixed(3)),
    );
  });
  const sum = (said, kinds, values) =>
    make("tr", { class: kinds }, make("th", { scope: "row", colspan: 2 }, said), ...cells(values), make("td", { class: "beside" }));
  const shown = new Set(order);
  const rest = result.tokens.map((_, i) => i).filter((i) => !shown.has(i));
  if (rest.length) {
    const values = [(i) => seen.values[i], ...columns.map((label) => (i) => result.tokens[i].contributions[label])];
    rows.push(sum(`${count(rest.length)} others`, "sum", values.map((of) => rest.reduce((total, i) => total + of(i), 0))));
  }
  for (const { name: called, value, added, contributions } of seen.cells) {
    rows.push(sum(name(value ? `${called} = ${value}` : `${called} is missing`), "sum", [added, ...columns.map((label) => contributions[label])]));
  }
  rows.push(sum("bias", "sum", [seen.bias, ...columns.map((label) => result.bias[label])]));
  rows.push(sum("= logit", "total", [seen.total, ...columns.map((label) => result.logits[label])]));
  // A threshold of 0 or 1 is none of any logit.
  if (seen.alone && Number.isFinite(logitOf(seen.label))) rows.push(sum("assigned from", "sum", [logitOf(seen.label)]));
  return make("div", { class: "wide" }, make("table", { class: state.unit === "token" ? "tokens" : "tokens units" }, make("thead", {}, head), make("tbody", {}, ...rows)));
}

function showNotes(seen) {
  const { tokens, completeness_error: error } = shownResult;
  const found = [];
  if (seen.values.length > SHOWN_TOKENS) {
    found.push(`The ${SHOWN_TOKENS} ${state.unit}s shown carry ${percent(seen.share(seen.order.slice(0, SHOWN_TOKENS)))} of the evidence.`);
  }
  const unknown = tokens.map((_, i) => i).filter((i) => !tokens[i].known);
  if (unknown.length) {
    const share = percent(seen.share(unknown));
    found.push(`Unknown to the model: ${count(unknown.length)} of ${count(tokens.length)} ${state.unit}s, ${share} of the evidence.`);
  }
  const wrong = error < 1e-3 ? "" : " The parts do not add up: do not trust this split.";
  const sum = error ? `to ${error.toExponential(0)}` : "exactly";
  found.push(
    `Checked: bias + ${state.unit}s${seen.cells.length ? " + columns" : ""} = logit, ${sum}.${wrong} This is exact accounting of this model's answer, not a claim about causes.`,
  );
  byId("notes").replaceChildren(...found.map((said) => make("p", {}, said)));
}

// A file of lines

const lines = fileOfLines({
  name,
  percent,
  model: () => state.model,
  ask: (texts, signal) => classify(texts, { model: state.model, explain: false, signal }),
  explain: (texts) => {
    fill(texts);
    byId("text").scrollIntoView({ block: "start" });
    ask().then(() => byId("verdict").focus({ preventScroll: true }));
  },
});

// Events

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!byId("locked").hidden) {
    unlock(byId("key").value);
    start();
  } else if (state.model) {
    delete byId("tinted").dataset.open;
    ask();
  }
});
byId("fields").addEventListener("input", askAsTyped);
byId("fields").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("ask").requestSubmit(byId("classify"));
});
byId("model").addEventListener("change", (event) => {
  state.model = state.models[event.target.selectedIndex];
  describe();
  if (state.result) ask();
});
byId("unit").append(...UNITS.map((unit) => make("option", { value: unit }, unit)));
byId("unit").addEventListener("change", (event) => {
  state.chosenUnit = event.target.value;
  delete byId("tinted").dataset.open;
  showWhy();
});
byId("copy").textContent = command.name;
byId("copy").addEventListener("click", async () => {
  const said = command.of(parts(), state.model);
  try {
    await navigator.clipboard.writeText(said);
    tell("Copied.");
  } catch {
    // No clipboard where the page is not served securely: show it, selected.
    const box = make("textarea", { readonly: "", rows: 4, "aria-label": command.name });
    box.value = said;
    tell("Copy this: ", box);
    box.select();
  }
});
const tinted = byId("tinted");
tinted.addEventListener("keydown", walk);
for (const [enter, leave] of [["focusin", "focusout"], ["pointerover", "pointerout"]]) {
  tinted.addEventListener(enter, (event) => event.target.closest(".token") && showTip(event.target.closest(".token")));
  tinted.addEventListener(leave, hideTip);
}
byId("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (file && state.model) lines.read(file);
});
byId("stop").addEventListener("click", () => lines.stop());
byId("download").addEventListener("click", () => lines.download());

start();
