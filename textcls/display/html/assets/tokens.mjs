// The token rule of textcls/model/tokenizer.py: where the tokens of a text stand. The model cuts for itself; this finds the
// places, and has the same frozen tables.
import { MARK, SPACE, UNSPACED, WORD } from "./unicode.mjs";

const LONGEST = 128;
const members = (ranges) => ranges.map(([a, b]) => `\\u{${a.toString(16)}}-\\u{${b.toString(16)}}`).join("");
const LETTER = `[${members(UNSPACED)}][${members(MARK)}]*`;
const TOKEN = new RegExp(`[${members(WORD)}]+|${LETTER}|[^${members(SPACE)}]`, "gu");
const UNSPACED_START = new RegExp(`^${LETTER}`, "u");

/** Letters of scripts without spaces side by side: so many that dividing them into words is quick, and two. */
export const UNSPACED_RUN = new RegExp(`(?:${LETTER}){1,500}`, "gu");
export const UNSPACED_PAIR = new RegExp(LETTER.repeat(2), "u");

/** Whether a token is of a script that is written without spaces. */
export const unspaced = (token) => UNSPACED_START.test(token);

/** `text` as models read it: NUL as a space, unpaired surrogates as U+FFFD; same length. */
export function clean(text) {
  return text.replaceAll("\0", " ").replace(/\p{Surrogate}/gu, "\ufffd");
}

/** `text` as it is given to a model: clean, and of each token the characters that are read. */
export function read(text) {
  const cleaned = clean(text);
  if (cleaned.length <= LONGEST) return cleaned;
  return cleaned.replace(TOKEN, (token) => (token.length > LONGEST ? [...token].slice(0, LONGEST).join("") : token));
}

/** Start and end of each token, at most `limit`, as indices of a JavaScript string. */
export function spans(text, limit = Infinity) {
  const found = [];
  for (const match of clean(text).matchAll(TOKEN)) {
    if (found.length === limit) break;
    found.push([match.index, match.index + match[0].length]);
  }
  return found;
}

/** The same places counted in code points, as Python and the server count. Ascending places only. */
export function toCodePoints(text, places) {
  let at = 0;
  let points = 0;
  const upTo = (end) => {
    for (; at < end; points++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
    return points;
  };
  return places.map(([start, end]) => [upTo(start), upTo(end)]);
}

/** Places counted in code points, as indices of a JavaScript string. Ascending places only. */
export function fromCodePoints(text, places) {
  let at = 0;
  let points = 0;
  const upTo = (end) => {
    for (; points < end; points++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
    return at;
  };
  return places.map(([start, end]) => [upTo(start), upTo(end)]);
}
