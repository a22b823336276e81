// CSV and TSV, by the rules of textcls/data/delimited.py: which delimiter, which records, which columns hold the text.
import { TEXT_COLUMNS } from "./names.mjs";

export const DELIMITERS = [",", ";", "\t", "|"];
// How many records must agree on the number of fields, and how much of a file is looked at for them.
const LOOKED_AT = 20;
const PEEK = 1 << 18;

/** The text of a file, and whether it begins with a byte order mark. Throws a TypeError if it is not of its encoding. */
export function decoded(bytes) {
  const [first, second] = bytes;
  const encoding = first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
  const text = new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes);
  return text.startsWith("\ufeff") ? { text: text.slice(1), marked: true } : { text, marked: false };
}

/** Yield the records of a text; `strict` refuses quotes that are none, with a sentence. */
export function* records(text, delimiter, strict = true) {
  const stop = new RegExp(`[${delimiter === "|" ? "\\|" : delimiter}\\r\\n]`, "g");
  const upToStop = (at) => {
    stop.lastIndex = at;
    return stop.exec(text)?.index ?? text.length;
  };
  const refuse = (from, why) => {
    if (strict) throw new SyntaxError(`Line ${text.slice(0, from).split(/\r\n|\n|\r/).length}: ${why}`);
  };
  for (let at = 0; at < text.length; ) {
    const record = [];
    const start = at;
    for (;;) {
      let field = "";
      if (text[at] === '"') {
        do {
          let end = text.indexOf('"', at + 1);
          if (end < 0) {
            refuse(start, "a quote opens in this row and is never closed.");
            end = text.length;
          }
          field += text.slice(at + 1, end);
          at = end + 1;
          if (text[at] === '"') field += '"';
        } while (text[at] === '"');
        if (at < upToStop(at)) refuse(start, 'a field goes on behind its closing quote; write a quote inside it as "".');
      }
      const end = upToStop(at);
      record.push(field + text.slice(at, end));
      at = end;
      if (text[at] !== delimiter) break;
      at += 1;
    }
    at += text.startsWith("\r\n", at) ? 2 : 1;
    yield record;
  }
}

/** The delimiter with which the first records have the same number of fields, and more than one; `usual` comes first. */
export function delimiterOf(text, usual = ",") {
  const cut = text.length > PEEK;
  const looked = text.slice(0, PEEK);
  const several = [];
  for (const delimiter of [usual, ...DELIMITERS.filter((other) => other !== usual)]) {
    const sizes = [];
    for (const record of records(looked, delimiter, false)) {
      if (!blank(record)) sizes.push(record.length);
      if (sizes.length === LOOKED_AT) break;
    }
    // The last record of a piece of a file may go on behind it.
    if (cut && sizes.length > 1 && sizes.length < LOOKED_AT) sizes.pop();
    if (sizes[0] > 1 && new Set(sizes).size === 1) return delimiter;
    if (sizes[0] > 1) several.push(delimiter);
  }
  return several[0] ?? usual;
}

const blank = (record) => record.length === 1 && record[0] === "";

/** A table: its delimiter, the names of its columns, its rows, and by their numbers what is wrong with those of another width. */
export function table(text, usual) {
  const delimiter = delimiterOf(text, usual);
  const [head = [], ...rest] = records(text, delimiter);
  const columns = head.map((name) => name.trim());
  const twice = columns.find((name, i) => columns.indexOf(name) < i);
  if (twice !== undefined) throw new SyntaxError(`Two columns are called "${twice}".`);
  const nothing = (record) => (record.length === 1 ? !record[0].trim() : record.every((cell) => cell === ""));
  const kept = rest.filter((record) => !blank(record) && !(columns.length > 1 && nothing(record)));
  const wrong = kept.map((record) => record.length !== columns.length && `${record.length} field${record.length === 1 ? "" : "s"} where the header has ${columns.length}.`);
  const rows = kept.map((record) => columns.map((_, i) => record[i] ?? ""));
  return { delimiter, columns, rows, wrong };
}

/** Where the texts stand: the numbers of the columns of the training, or of the one of a well-known name; else null. */
export function textColumns(columns, trained) {
  const places = trained.map((name) => columns.indexOf(name));
  if (!places.includes(-1)) return places;
  if (trained.length > 1) return null;
  const plain = columns.map((name) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, ""));
  const called = (test) => plain.flatMap((name, i) => (test(name) ? [i] : []));
  const [same, known] = [called((name) => name === "text"), called((name) => TEXT_COLUMNS.includes(name))];
  if (same.length === 1) return same;
  return known.length === 1 ? known : columns.length === 1 ? [0] : null;
}

/** Records as CSV, as a spreadsheet reads them. */
export function written(rows, delimiter = ",") {
  const quoted = new RegExp(`["\\r\\n${delimiter === "|" ? "\\|" : delimiter}]`);
  const cell = (value) => (quoted.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return rows.map((row) => `${row.map((value) => cell(String(value))).join(delimiter)}\r\n`).join("");
}
