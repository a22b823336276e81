// A model of textcls in Node: textcls web tickets.onnx --output site ..., npm install onnxruntime-node, node classify.mjs
import { readFileSync } from "node:fs";
import ort from "onnxruntime-node";
import { load } from "./site/page/model.mjs";

const model = await load(ort, readFileSync("site/model.onnx"));
const [answer] = await model.classify(["my card was charged twice"], { explain: true });
console.log(answer.label, answer.score.toFixed(4));
for (const { text, contributions } of answer.tokens) console.log(text, contributions[answer.label].toFixed(4));
