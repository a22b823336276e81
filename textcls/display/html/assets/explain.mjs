// The attributions of an explanation, as textcls/model/explanation.py has them: one number a token, for a label, against all
// others (weighted by their probabilities) or against one. Where a text may have several labels they do not compete, and
// a label stands for itself.

/** Whether the text may have several labels, or none. */
export const several = (result) => result.assigned !== undefined;

/** How much the contribution to each label counts. */
function contrast(result, label, against) {
  if (several(result) && against === null) return new Map([[label, 1]]);
  const names = result.labels.map((each) => each.label);
  if (against !== null) return new Map(names.map((name) => [name, (name === label) - (name === against)]));
  const rest = result.labels.filter((each) => each.label !== label);
  const total = rest.reduce((sum, each) => sum + each.score, 0);
  return new Map([
    [label, 1],
    // Of a label that is certain the others' probabilities may all be zero.
    ...rest.map((each) => [each.label, total > 0 ? -each.score / total : -1 / rest.length]),
  ]);
}

/** The contrast of the contributions of each token, of the bias and of the logits. */
export function attribution(result, label, against = null) {
  const weights = contrast(result, label, against);
  const along = (values) => {
    let sum = 0;
    for (const [name, weight] of weights) sum += values[name] * weight;
    return sum;
  };
  const values = result.tokens.map((token) => along(token.contributions));
  const sizes = values.map(Math.abs);
  const total = sizes.reduce((a, b) => a + b, 0);
  // Of a unit of several tokens.
  const means = values.map((value, i) => value / (result.tokens[i].size ?? 1));
  return {
    label,
    against,
    // Whether the values are the contributions to the label themselves.
    alone: several(result) && against === null,
    values,
    bias: along(result.bias),
    cells: (result.columns ?? []).map((cell) => ({ ...cell, added: along(cell.contributions) })),
    total: along(result.logits),
    largest: sizes.reduce((a, b) => Math.max(a, b), 0) || 1,
    means,
    largestMean: means.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1,
    order: values.map((_, i) => i).sort((a, b) => sizes[b] - sizes[a] || a - b),
    share: (which) => (total ? Math.min(1, which.reduce((sum, i) => sum + sizes[i], 0) / total) : 1),
  };
}

/** How strongly a token is tinted: 0, not at all, to 9, signed. */
export function level(value, largest) {
  const share = value / largest;
  return Math.abs(share) < 0.04 ? 0 : Math.sign(share) * Math.min(9, Math.ceil(Math.abs(share) * 9));
}

const STEERS = /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\p{Surrogate}/gu;

/** `text` as it may be shown: same length, without characters that steer or reorder. */
export function visible(text) {
  return text.replace(STEERS, (c) => {
    const point = c.charCodeAt(0);
    return point < 32 ? String.fromCharCode(0x2400 + point) : point === 127 ? "\u2421" : "\ufffd";
  });
}

/** A token or label as it is named: on one line, never blank, and cut where it is very long. */
export function named(text) {
  let shown = visible(text).replace(/[\n\t]/g, " ");
  if (/^[\p{Z}\p{C}\p{Mn}]*$/u.test(shown.replaceAll(" ", ""))) {
    shown = [...shown].slice(0, 12).map((c) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`).join(" ");
  }
  const points = [...shown];
  return points.length <= 60 ? shown : points.slice(0, 59).join("") + "\u2026";
}
