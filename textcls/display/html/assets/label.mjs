// The page of textcls label: one text at a time, keyboard first. An answer is on disk before the next text is shown.
import { byId, count, make } from "./dom.mjs";
import { level, named, visible } from "./explain.mjs";
import { meant, scoresOf, shown } from "./label_choice.mjs";
import { agreement, chart, sentence } from "./label_progress.mjs";

const POLL = 2000;
const token = location.hash.slice(1);
const page = { task: null, state: null, at: -1, chosen: new Set(), all: false, busy: false, touched: false, hintTries: 0, drawn: "" };

// Whoever sits here: a tab keeps its texts over a reload.
const who = sessionStorage.getItem("textcls-who") ?? crypto.randomUUID();
sessionStorage.setItem("textcls-who", who);
byId("by").value = localStorage.getItem("textcls-by") ?? "";

const percent = (share) => `${Math.round(100 * share)}%`;
const rows = (number) => `${count(number)} text${number === 1 ? "" : "s"}`;

// Asking the server

async function ask(what, given = {}) {
  const headers = { "content-type": "application/json", "x-textcls-token": token };
  let response;
  try {
    response = await fetch(`/api/${what}`, { method: "POST", headers, body: JSON.stringify({ who, ...given }) });
  } catch {
    throw new Error("textcls label does not answer any more. Every confirmed answer is on disk: run the command again, and open the address that it prints.");
  }
  const found = await response.json();
  if (!response.ok) throw new Error(found.error);
  return found;
}

/** Ask for something that gives the next text; until then nothing else is asked. */
async function go(what, given, said) {
  if (page.busy) return;
  page.busy = true;
  document.body.dataset.busy = "";
  try {
    const found = await ask(what, given);
    byId("problem").hidden = true;
    byId("find").value = "";
    byId("find").blur();
    page.state = found.state;
    take(found.text);
    tell(found.state);
    byId("said").textContent = said;
  } catch (error) {
    problem(error.message);
  } finally {
    page.busy = false;
    delete document.body.dataset.busy;
  }
}

function problem(message) {
  byId("problem").textContent = message;
  byId("problem").hidden = false;
}

// A text

function take(task) {
  page.task = task;
  byId("work").hidden = task === null;
  byId("done").hidden = task !== null;
  if (task === null) return;
  page.chosen = new Set(task.labels);
  if (page.state?.several && (page.state.suspects ? !task.answered : !task.labels.length)) {
    page.chosen = new Set(task.proposal?.assigned ?? []);
  }
  page.at = -1;
  page.touched = false;
  page.meant = page.state.suspects ? null : (task.labels[0] ?? null);
  byId("chosen").textContent = reason(task);
  const copies = task.copies.map(({ label, rows: number }) => `${named(label)} (${number})`).join(", ");
  byId("copies").textContent = `Copies of this text are labelled: ${copies}.`;
  byId("copies").hidden = !copies;
  showLabels();
  byId("text").scrollTop = 0;
  if (document.activeElement === document.body) byId("text").focus({ preventScroll: true });
}

function reason({ chosen, proposal, labels }) {
  if (proposal?.by === "audit") {
    if (proposal.assigned) {
      const doing = [["add", proposal.added], ["take away", proposal.gone]].filter(([, names]) => names.length);
      const said = doing.map(([verb, names]) => `${verb} ${names.map(named).join(", ")}`).join(" and ");
      return `Labelled ${labels.map(named).join(", ") || "with nothing"}. Models that have not seen it would ${said}, at ${percent(proposal.score)}.`;
    }
    const [suggested, own] = proposal.labels;
    return `Labelled ${named(own.label)}, which models that have not seen it give ${percent(own.score)}; they say ${named(suggested.label)}, ${percent(suggested.score)}.`;
  }
  const again = labels.length ? "Your last answer, to change. " : "";
  const came = proposal?.by === "answers";
  const why = {
    start: "One of the texts to begin with, which are unlike each other.",
    model: came ? "The answer that it brings along is among the least sure." : "The model is unsure of this one, or has seen none like it.",
    random: "A random text, for an honest estimate.",
  }[chosen];
  const hint = proposal?.by === "names" ? " The label that is marked is a guess by its name alone." : came ? " What is marked came along." : "";
  return `${again}${why ?? ""}${hint}`;
}

function showText(label) {
  const { task } = page;
  const box = byId("text");
  const { proposal } = task;
  const values = proposal?.evidence?.[label];
  const cut = task.cut ? [make("span", { class: "unread" }, ` … (${count(task.cut)} more characters)`)] : [];
  byId("legend").textContent = values ? `Blue speaks for ${named(label)}, orange (wavy) against it; dotted words are unknown to the model.` : "";
  if (!values) {
    box.replaceChildren(...(proposal?.words?.length ? marked(visible(task.text), proposal.words) : [visible(task.text)]), ...cut);
    return;
  }
  const largest = Math.max(...values.map(Math.abs), 1e-9);
  const content = proposal.pieces.map((piece, i) => {
    if (i % 2 === 0) return visible(piece);
    const number = (i - 1) / 2;
    const tint = level(values[number], largest);
    const kinds = ["token", tint && `${tint > 0 ? "p" : "n"}${Math.abs(tint)}`, !proposal.known[number] && "unknown"];
    return make("span", { class: kinds.filter(Boolean).join(" ") }, visible(piece));
  });
  box.replaceChildren(...content, ...cut);
}

/** The text with the words that speak against its label. */
function marked(text, words) {
  const found = [];
  let at = 0;
  for (;;) {
    const next = words.map((word) => [text.indexOf(word, at), word]).filter(([place]) => place >= 0).sort((a, b) => a[0] - b[0])[0];
    if (!next) return [...found, text.slice(at)];
    found.push(text.slice(at, next[0]), make("span", { class: "word" }, next[1]));
    at = next[0] + next[1].length;
  }
}

// Labels

/** All labels that there are: those saved, then those that only this text has been given. */
const everyLabel = () => [...new Set([...page.state.labels.map(({ label }) => label), ...page.chosen])];
const listed = () => shown(everyLabel(), scoresOf(page.task.proposal), byId("find").value, page.all);

/** What news can change of the labels as they are shown. */
const drawable = () => JSON.stringify([page.task?.row, page.state.labels.map(({ label }) => label)]);

function showLabels() {
  if (!page.task || !page.state) return;
  page.drawn = drawable();
  const list = listed();
  const typed = byId("find").value;
  const scores = scoresOf(page.task.proposal);
  if (page.at < 0 || page.at >= list.length || typed !== page.typed) page.at = meant(list, scores, typed, page.meant);
  page.typed = typed;
  const own = page.state.suspects ? page.task.labels : [];
  byId("labels").replaceChildren(
    ...list.map(({ label, key, fresh }, i) => {
      const score = scores.get(label);
      const kinds = ["label", i === page.at && "at", page.chosen.has(label) && page.state.several && "on", fresh && "new"];
      const bar = make("span", { class: "share" });
      if (score > 0) bar.style.width = percent(score);
      return make(
        "button",
        { type: "button", class: kinds.filter(Boolean).join(" "), "data-label": label, "aria-pressed": String(page.chosen.has(label)), click: () => pick(label) },
        ...(score > 0 ? [bar] : []),
        ...(key ? [make("kbd", {}, key)] : []),
        make("span", { class: "called", dir: "auto" }, ...(fresh ? ["New label: "] : []), ...breakable(named(label)), own.includes(label) ? " (now)" : ""),
        ...(score > 0 ? [make("span", { class: "of" }, percent(score))] : []),
      );
    }),
  );
  const hidden = typed.trim() ? 0 : everyLabel().length - list.length;
  byId("more").hidden = hidden <= 0;
  byId("more").textContent = `Show ${count(hidden)} more labels, or type to find one`;
  const label = list[page.at]?.label;
  showText(label);
  showAccept(label);
}

/** A name that may break behind its signs, as names of labels are often several words in one. */
function breakable(name) {
  return name.split(/(?<=[_\-/.:])/).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));
}

function showAccept(label) {
  const button = byId("accept");
  if (page.state.several) {
    const names = [...page.chosen].map(named).join(", ");
    button.textContent = byId("find").value && label ? `Add ${named(label)}` : names ? `Save ${names}` : "Save without a label";
    button.disabled = false;
  } else {
    button.replaceChildren(...(label ? breakable(named(label)) : ["Choose a label"]));
    button.disabled = !label;
  }
}

/** A label was chosen: it is the answer, or where a text may have several it is put there or taken away. */
function pick(label) {
  if (!page.state.several) return save([label]);
  page.touched = true;
  if (!page.chosen.delete(label)) page.chosen.add(label);
  byId("find").value = "";
  showLabels();
}

function accept() {
  const label = listed()[page.at]?.label;
  if (!page.state.several) return label && save([label]);
  if (byId("find").value.trim()) return label && pick(label);
  save([...page.chosen]);
}

function save(labels) {
  const by = byId("by").value.trim();
  go("answer", { row: page.task.row, labels, ...(by ? { by } : {}) }, `Saved: ${labels.map(named).join(", ") || "no label"}.`);
}

const undo = () => go("undo", {}, "Taken back.");
const skip = () => page.task && go("skip", { row: page.task.row }, "Skipped.");

// What is known

function tell(state) {
  page.state = state;
  const skipped = state.skipped ? `, ${count(state.skipped)} skipped` : "";
  const what = state.suspects ? `${rows(state.answers)} looked at` : `${rows(state.answers)} labelled`;
  byId("counts").textContent = `${what}, ${count(state.left)} left${skipped} → ${state.output}`;
  byId("done-said").textContent = `${what}${skipped}. They are in ${state.output}: end textcls label with Ctrl-C, and train on them.`;
  byId("keys").textContent = state.several
    ? "Keys: 1-9 add or remove a label, Enter saves, → skips, Ctrl-Z takes back, letters find a label or name a new one."
    : "Keys: 1-9 or Enter label the text, ↑ ↓ choose, → skips, Ctrl-Z takes back, letters find a label or name a new one.";
  byId("progress").hidden = state.suspects;
  const [number, why] = sentence(state);
  byId("accuracy").replaceChildren(...(number ? [make("b", {}, number)] : []), why);
  byId("agreed").textContent = agreement(state);
  const curve = chart(state.estimates);
  byId("chart").replaceChildren(...(curve ? [curve] : []));
  byId("advice").textContent = state.advice ?? "";
  byId("learning").textContent = state.failed || (state.learning ? (state.answers ? "Learning from your answers …" : "Reading your texts …") : state.learned_from ? `It has learned from ${count(state.learned_from)} labels.` : "");
  byId("tally").replaceChildren(...state.labels.map(({ label, rows: number }) => make("tr", {}, make("th", { scope: "row" }, named(label)), make("td", {}, count(number)))));
  // Buttons made anew would lose the focus, a tap that has begun, and what is selected in the text.
  if (drawable() !== page.drawn) showLabels();
}

/** Whether nobody has begun to answer the text, so that it may be shown anew. */
const untouched = () => !page.touched && !byId("find").value;

/** Look for news; what was shown without a model is shown anew once there is one. */
async function poll() {
  if (page.busy || document.hidden) return;
  try {
    const { state } = await ask("state");
    if (page.busy) return;
    tell(state);
    if (page.task === null) {
      if (state.left > 0) await go("next", {}, "");
      return;
    }
    const { proposal, labels } = page.task;
    const late = !proposal?.pieces && state.learned_from && !labels.length;
    const hinted = proposal === null && !state.learned_from && !state.learning && page.hintTries < 3;
    if (!untouched() || !(late || hinted)) return;
    page.hintTries += hinted ? 1 : 0;
    await renew();
  } catch (error) {
    problem(error.message);
  }
}

/** Show the same text with what is known of it by now. Keys count meanwhile: whoever begins to answer keeps what they see. */
async function renew() {
  const before = page.task;
  const { text, state } = await ask("next");
  if (page.busy || page.task !== before || !untouched()) return;
  page.state = state;
  take(text);
  tell(state);
}

// Keys

function key(event) {
  const { target } = event;
  if (event.isComposing || target.id === "by" || !page.state) return;
  const finding = target.id === "find";
  const typed = byId("find").value;
  // A key that is held would answer, or skip, texts that nobody has read: also by a button, which Enter presses.
  if (event.repeat && (event.key === "Enter" || (event.key === "ArrowRight" && !typed))) return event.preventDefault();
  const undoing = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
  if (undoing && !typed) return taken(event, undo);
  if (event.ctrlKey || event.metaKey || event.altKey || !page.task) return;
  const list = listed();
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && list.length) return taken(event, () => move((page.at + step + list.length) % list.length));
  if (event.key === "ArrowRight" && !typed) return taken(event, skip);
  if (event.key === "Escape") return taken(event, () => ((byId("find").value = ""), byId("text").focus(), showLabels()));
  if (event.key === "Enter" && !(target instanceof HTMLButtonElement)) return taken(event, accept);
  const numbered = !typed && list.find((row) => row.key === event.key);
  if (numbered && !event.repeat) return taken(event, () => pick(numbered.label));
  if (!finding && event.key.length === 1 && event.key !== " ") byId("find").focus();
}

function taken(event, what) {
  event.preventDefault();
  what();
}

function move(to) {
  page.touched = true;
  page.at = to;
  page.meant = listed()[to].label;
  showLabels();
}

document.addEventListener("keydown", key);
byId("find").addEventListener("input", showLabels);
byId("accept").addEventListener("click", accept);
byId("undo").addEventListener("click", undo);
byId("undo-done").addEventListener("click", undo);
byId("more").addEventListener("click", () => ((page.all = true), showLabels()));
byId("skip").addEventListener("click", skip);
byId("by").addEventListener("change", (event) => localStorage.setItem("textcls-by", event.target.value));
if (token) {
  await go("next", {}, "");
  setInterval(poll, POLL);
} else {
  problem("Open this page by the whole address that textcls label has printed, with what stands behind its #.");
}
