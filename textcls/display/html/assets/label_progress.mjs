// What is known of the accuracy, in a sentence and as a curve.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 480;
const HEIGHT = 130;
const LEFT = 40;
const BOTTOM = 22;

const percent = (share) => `${Math.round(100 * share)}%`;

/** What the page says of the accuracy: a number, and where it comes from. */
export function sentence(state) {
  const last = state.estimates.at(-1);
  if (!last) {
    const why = state.learned_from ? "the random sample is still too small" : "there is no model yet";
    return ["", `No accuracy yet: ${why}. Every fifth text is a random one, for an honest estimate.`];
  }
  return [
    percent(last.accuracy),
    ` right (${percent(last.low)} to ${percent(last.high)}) on ${last.rows} random texts that it had not seen, after ${last.labels} labels. ` +
      "Texts that the model asked for are harder, and do not count.",
  ];
}

/** How often the answers that came along are those of people. */
export function agreement({ agreement: found }) {
  if (!found) return "";
  return `The answers that came along are yours on ${found.right} of ${found.rows} random texts, ${percent(found.accuracy)} (${percent(found.low)} to ${percent(found.high)}).`;
}

function make(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

/** The curve of the accuracy over the labels, with its interval; null for fewer than two points. */
export function chart(estimates) {
  if (estimates.length < 2) return null;
  const most = estimates.at(-1).labels;
  const x = (labels) => LEFT + ((WIDTH - LEFT - 8) * labels) / most;
  const y = (share) => 8 + (HEIGHT - BOTTOM - 8) * (1 - share);
  const path = (points) => points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" ");
  const upper = estimates.map((one) => [x(one.labels), y(one.high)]);
  const lower = estimates.map((one) => [x(one.labels), y(one.low)]).reverse();
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Accuracy over labels" });
  for (const share of [0, 0.5, 1]) {
    svg.append(make("line", { class: "axis", x1: LEFT, x2: WIDTH - 8, y1: y(share), y2: y(share) }));
    svg.append(make("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }, percent(share)));
  }
  svg.append(make("polygon", { class: "band", points: path([...upper, ...lower]) }));
  svg.append(make("polyline", { class: "line", points: path(estimates.map((one) => [x(one.labels), y(one.accuracy)])) }));
  svg.append(make("text", { x: WIDTH - 8, y: HEIGHT - 5, "text-anchor": "end" }, `${most} labels`));
  return svg;
}
