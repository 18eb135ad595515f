// Checks manifests of Kubernetes, on standard input, against the schemas of their kinds: by their types, which know every
// field, and by their validators, which know what is required and the form of values.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const modules = process.argv[2]; // node_modules
const require = createRequire(join(modules, "x.js"));
const ts = require("typescript");

const faults = [];
const documents = require("yaml").parseAllDocuments(readFileSync(0, "utf8")).map((d) => d.toJS());
let source = "";
for (const d of documents) {
  const path = `${d.apiVersion.includes("keda.sh") ? "@kubernetes-models/keda" : "kubernetes-models"}/${d.apiVersion}/${d.kind}`;
  source += `((x: import("${path}").I${d.kind}) => x)(${JSON.stringify(d)});\n`;
  const model = (await import(join(modules, path + ".js")))[d.kind];
  try {
    new model(d).validate();
  } catch (e) {
    faults.push(`${d.kind} ${d.metadata.name}: ${e.message}`);
  }
}
const name = join(modules, "manifests.ts");
const options = { noEmit: true, strict: true, types: [], module: ts.ModuleKind.NodeNext, skipLibCheck: true };
const host = ts.createCompilerHost(options);
const { getSourceFile, fileExists } = host;
host.fileExists = (f) => f === name || fileExists(f);
host.getSourceFile = (f, ...rest) => (f === name ? ts.createSourceFile(f, source, ts.ScriptTarget.ES2022) : getSourceFile(f, ...rest));
for (const d of ts.getPreEmitDiagnostics(ts.createProgram([name], options, host))) {
  const at = d.file ? documents[d.file.getLineAndCharacterOfPosition(d.start).line] : undefined;
  faults.push(`${at?.kind} ${at?.metadata.name}: ${ts.flattenDiagnosticMessageText(d.messageText, " ")}`);
}
for (const f of faults) console.error(f);
console.log(`${documents.length} manifests, ${faults.length} faults`);
process.exit(faults.length || documents.length === 0 ? 1 : 0);
