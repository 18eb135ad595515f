// Drives the real opencode with the plugin compactor.js and a model that plays answers, against the server in
// COMPACTOR_URL.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const { COMPACTOR_URL, COMPACTOR_KEY } = process.env;
const home = mkdtempSync(join(tmpdir(), "opencode-"));
const listening = (server) => new Promise((done) => {
  server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${server.address().port}`));
});

/** A model of chat-completions: it reads each file that the last message of the user names, and then answers. */
const requests = [], prompts = [];
const model = createServer(async (request, response) => {
  let raw = "";
  for await (const part of request) raw += part;
  const body = JSON.parse(raw), last = body.messages.at(-1);
  (body.tools?.length ? requests : prompts).push(body.messages); // of the agent; for titles and summaries
  const files = (body.tools?.length && last.role === "user" && JSON.stringify(last.content).match(/\/\S+?\.txt/g)) || [];
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  const send = (delta, finish_reason = null, usage) => response.write(`data: ${JSON.stringify({
    id: "x", object: "chat.completion.chunk", created: 1, model: body.model, choices: [{ index: 0, delta, finish_reason }], usage,
  })}\n\n`);
  const n = requests.length, calls = files.map((filePath, index) =>
    ({ index, id: `call_${n}_${index}`, type: "function", function: { name: "read", arguments: JSON.stringify({ filePath }) } }));
  send({ role: "assistant", ...(calls.length ? { tool_calls: calls } : { content: `Answer ${n}.` }) });
  send({}, calls.length ? "tool_calls" : "stop", { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 });
  response.end("data: [DONE]\n\n");
});
const closed = createServer(), silent = createServer(() => {});
const [modelURL, closedURL, silentURL] = await Promise.all([model, closed, silent].map(listening));
closed.close();

/** A folder with a configuration, and files to be read. */
function folder(name, options) {
  const dir = join(home, name);
  mkdirSync(dir);
  for (const file of ["a", "b"]) writeFileSync(join(dir, file + ".txt"), `${file} of ${name}\n`.repeat(200));
  const models = { "gpt-4o": { limit: { context: 100_000, output: 1000 } } };
  writeFileSync(join(dir, "opencode.json"), JSON.stringify({
    provider: { scripted: { npm: "@ai-sdk/openai-compatible", options: { baseURL: modelURL, apiKey: "none" }, models } },
    model: "scripted/gpt-4o", small_model: "scripted/gpt-4o", permission: { "*": "allow" },
    plugin: [[`file://${resolve("compactor.js")}`, options]],
  }));
  return dir;
}

// opencode would ask a registry for the types of plugins.
const config = join(home, ".config", "opencode");
mkdirSync(join(config, "node_modules"), { recursive: true });
const types = { packages: { "": { dependencies: { "@opencode-ai/plugin": "1.18.33" } } } };
writeFileSync(join(config, "package-lock.json"), JSON.stringify(types));
const binary = readdirSync("node_modules").find((name) => /^opencode-linux-/.test(name));
const off = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "CLAUDE_CODE", "EXTERNAL_SKILLS", "SHARE"];
const command = [resolve("node_modules", binary, "bin/opencode"), "serve", "--port", "0", "--print-logs", "--log-level", "WARN"];
const host = spawn(command[0], command.slice(1), {
  cwd: home, stdio: ["ignore", "pipe", "pipe"],
  env: {
    PATH: process.env.PATH, HOME: home, COMPACTOR_URL, COMPACTOR_KEY,
    ...Object.fromEntries(off.map((name) => [`OPENCODE_DISABLE_${name}`, "1"])),
  },
});
let log = "";
const base = await new Promise((done, fail) => {
  for (const stream of [host.stdout, host.stderr]) {
    stream.on("data", (part) => {
      const [, address] = (log += part).match(/listening on (http:\S+)/) ?? [];
      if (address) done(address);
    });
  }
  host.on("close", () => fail(new Error(log)));
});

async function call(url, body, headers) {
  const request = { method: body ? "POST" : "GET", headers: { "Content-Type": "application/json", ...headers } };
  const answer = await fetch(url, { ...request, body: body && JSON.stringify(body) });
  const text = await answer.text();
  assert.ok(answer.ok, `${url}: ${answer.status} ${text}\n${log}`);
  return JSON.parse(text);
}
const api = (path, body) => call(`${COMPACTOR_URL}/v1/sessions/${path}`, body, { Authorization: `Bearer ${COMPACTOR_KEY}` });
const compact = (chat, ...pipeline) => api(`${chat.id}/compact?wait=30s`, { from: "view", pipeline });

class Chat {
  constructor(dir) { this.dir = dir; }
  at(path) { return `${base}/session${path}?directory=${encodeURIComponent(this.dir)}`; }
  async turn(text) {
    this.id ??= (await call(this.at(""), { title: "Files" })).id;
    await call(this.at(`/${this.id}/message`), { parts: [{ type: "text", text }] });
    return requests.findLast((messages) => JSON.stringify(messages).includes(this.dir)); // the system prompt has the folder
  }
  messages() { return call(this.at(`/${this.id}/message`)); }
}
const roles = (messages) => messages.filter((m) => m.role !== "system").map((m) => m.role).join(" ");

const parts = {
  async compaction() {
    const dir = folder("long", { timeout: 60_000 }), chat = new Chat(dir);
    for (let i = 0; i < 4; i++) await chat.turn(`Read ${dir}/a.txt and ${dir}/b.txt , question ${i}`);
    const stored = (await api(`${chat.id}/messages?kind=messages`)).items;
    assert.equal(roles(stored.slice(0, 5)), "user assistant tool tool assistant", "calls at once are one message");
    const before = await chat.turn("And now?");
    assert.equal(roles(before), "user assistant tool tool assistant ".repeat(4) + "user", "nothing is compacted yet");
    // Results of tools are shortened, each in its place.
    await compact(chat, { strategy: "prune_tool_results" });
    const pruned = await chat.turn("Go on.");
    assert.equal(roles(pruned), roles(before) + " assistant user");
    assert.ok(JSON.stringify(pruned).length < JSON.stringify(before).length - 3000, "results are shorter");
    const calls = (messages) => messages.flatMap((m) => m.tool_calls ?? []).map((c) => c.id + c.function.arguments);
    assert.deepEqual(calls(pruned), calls(before));
    // A summary.
    await compact(chat, { strategy: "handoff", params: { protect_last_n: 2, tail_token_budget: 500 } });
    const after = await chat.turn("The last question?");
    assert.match(JSON.stringify(after), /CONVERSATION SUMMARY/);
    assert.ok(after.length < 12, roles(after));
    assert.match(JSON.stringify(after.at(-1)), /The last question\?/);
    const all = await chat.messages();
    assert.doesNotMatch(JSON.stringify(all), /CONVERSATION SUMMARY/, "opencode keeps what was said");
    assert.equal(all.length, 4 * 3 + 3 * 2);
    // The user takes the last turn back.
    await call(chat.at(`/${chat.id}/revert`), { messageID: all.at(-2).info.id });
    assert.match(JSON.stringify((await chat.turn("Another question.")).at(-1)), /Another question/);
    assert.doesNotMatch(JSON.stringify((await api(`${chat.id}/view`)).messages), /The last question/);
    // opencode compacts by itself, the view and not the whole history, and Compactor follows.
    prompts.length = 0;
    await call(chat.at(`/${chat.id}/summarize`), { providerID: "scripted", modelID: "gpt-4o" });
    const summarized = JSON.stringify(prompts.find((messages) => /carry over what it says/.test(JSON.stringify(messages))));
    assert.match(summarized, /CONVERSATION SUMMARY — REFERENCE ONLY/);
    assert.ok(summarized.length < JSON.stringify(before).length);
    const own = await chat.turn("And after that?");
    assert.doesNotMatch(JSON.stringify(own), /CONVERSATION SUMMARY — REFERENCE ONLY/);
    const view = (await api(`${chat.id}/view`)).messages;
    assert.equal(view.length, own.filter((m) => m.role !== "system").length);
  },

  async unreachable() {
    for (const [name, url] of [["closed", closedURL], ["silent", silentURL]]) {
      const chat = new Chat(folder(name, { url, timeout: 50, retryAfter: 0 }));
      await chat.turn(`Read ${chat.dir}/a.txt`);
      assert.equal(roles(await chat.turn("Again.")), "user assistant tool assistant user");
    }
    assert.equal(log.match(/Compactor is not used/g).length, 2, log);
  },
};

try {
  await Promise.all(process.argv.slice(2).map((name) => parts[name]()));
} finally {
  for (const server of [model, silent]) {
    server.closeAllConnections();
    server.close();
  }
  host.removeAllListeners("close");
  host.kill();
  await new Promise((done) => host.on("close", done));
  rmSync(home, { recursive: true, force: true });
}
