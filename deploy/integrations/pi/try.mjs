// Drives the real pi with the extension compactor.js and a model that plays answers, against the server in COMPACTOR_URL.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const { COMPACTOR_URL, COMPACTOR_KEY } = process.env;
const home = mkdtempSync(join(tmpdir(), "pi-"));
const listening = (server) => new Promise((done) => {
  server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${server.address().port}`));
});

/** A model of chat-completions: it reads each file that the last message of the user names, and then answers. */
const requests = [], prompts = [];
const model = createServer(async (request, response) => {
  let raw = "";
  for await (const part of request) raw += part;
  const body = JSON.parse(raw), last = body.messages.at(-1);
  (body.tools?.length ? requests : prompts).push(body.messages); // of the agent; for summaries
  const files = (body.tools?.length && last.role === "user" && JSON.stringify(last.content).match(/\/\S+?\.txt/g)) || [];
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  const send = (delta, finish_reason = null, usage) => response.write(`data: ${JSON.stringify({
    id: "x", object: "chat.completion.chunk", created: 1, model: body.model, choices: [{ index: 0, delta, finish_reason }], usage,
  })}\n\n`);
  const n = requests.length, calls = files.map((path, index) =>
    ({ index, id: `call_${n}_${index}`, type: "function", function: { name: "read", arguments: JSON.stringify({ path }) } }));
  send({ role: "assistant", ...(calls.length ? { tool_calls: calls } : { content: `Answer ${n}.` }) });
  send({}, calls.length ? "tool_calls" : "stop", { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 });
  response.end("data: [DONE]\n\n");
});
const closed = createServer(), silent = createServer(() => {});
const [modelURL, closedURL, silentURL] = await Promise.all([model, closed, silent].map(listening));
closed.close();

/** pi in its mode for other programs. */
class Chat {
  log = "";
  constructor(name, env) {
    this.dir = join(home, name);
    const agent = join(this.dir, "agent");
    mkdirSync(agent, { recursive: true });
    for (const file of ["a", "b"]) writeFileSync(join(this.dir, file + ".txt"), `${file} of ${name}\n`.repeat(200));
    writeFileSync(join(agent, "models.json"), JSON.stringify({ providers: { scripted: {
      baseUrl: modelURL, apiKey: "none", api: "openai-completions", models: [{ id: "gpt-4o", contextWindow: 100_000 }],
    } } }));
    writeFileSync(join(agent, "settings.json"), JSON.stringify({ compaction: { keepRecentTokens: 100 } }));
    const program = resolve("node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js");
    const args = ["--mode", "rpc", "--offline", "--model", "scripted/gpt-4o", "-e", resolve("compactor.js")];
    const own = { PATH: process.env.PATH, HOME: home, PI_CODING_AGENT_DIR: agent, COMPACTOR_URL, COMPACTOR_KEY, ...env };
    this.process = spawn(process.execPath, [program, ...args], { cwd: this.dir, env: own });
    this.events = [];
    this.waiting = [];
    let rest = "";
    this.process.stdout.on("data", (part) => {
      const lines = (rest + part).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const event = JSON.parse(line);
        this.events.push(event);
        this.waiting = this.waiting.filter((w) => !w(event));
      }
    });
    this.process.stderr.on("data", (part) => { this.log += part; });
  }
  send(command, until) {
    const done = new Promise((end, fail) => {
      this.process.once("close", () => fail(new Error(this.log)));
      this.waiting.push((event) => {
        if (event.type === "response" && event.success === false) fail(new Error(JSON.stringify(event)));
        return until(event) && (end(event), true);
      });
    });
    this.process.stdin.write(JSON.stringify(command) + "\n");
    return done;
  }
  async turn(message) {
    await this.send({ type: "prompt", message }, (e) => e.type === "agent_settled");
    return requests.findLast((messages) => JSON.stringify(messages).includes(this.dir)); // the system prompt has the folder
  }
  async id() { return (await this.send({ type: "get_state" }, (e) => e.command === "get_state")).data.sessionId; }
  async close() {
    this.process.removeAllListeners("close");
    const closed = new Promise((done) => this.process.on("close", done));
    this.process.kill();
    await closed;
  }
}

async function api(path, body) {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${COMPACTOR_KEY}` };
  const request = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) };
  const answer = await fetch(`${COMPACTOR_URL}/v1/sessions/${path}`, request), text = await answer.text();
  assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}
const roles = (messages) => messages.filter((m) => m.role !== "system").map((m) => m.role).join(" ");

const parts = {
  async compaction() {
    const chat = new Chat("long", { COMPACTOR_TIMEOUT: "60000" }), { dir } = chat;
    for (let i = 0; i < 4; i++) await chat.turn(`Read ${dir}/a.txt and ${dir}/b.txt , question ${i}`);
    const id = await chat.id(), compact = (...pipeline) => api(`${id}/compact?wait=30s`, { from: "view", pipeline });
    const stored = (await api(`${id}/messages?kind=messages`)).items;
    assert.equal(roles(stored.slice(0, 5)), "user assistant tool tool assistant", "calls at once are one message");
    const before = await chat.turn("And now?");
    assert.equal(roles(before), "user assistant tool tool assistant ".repeat(4) + "user", "nothing is compacted yet");
    // Results of tools are shortened, each in its place.
    await compact({ strategy: "prune_tool_results" });
    const pruned = await chat.turn("Go on.");
    assert.equal(roles(pruned), roles(before) + " assistant user");
    assert.ok(JSON.stringify(pruned).length < JSON.stringify(before).length - 3000, "results are shorter");
    const calls = (messages) => messages.flatMap((m) => m.tool_calls ?? []).map((c) => c.id + c.function.arguments);
    assert.deepEqual(calls(pruned), calls(before));
    // A summary.
    await compact({ strategy: "handoff", params: { protect_last_n: 2, tail_token_budget: 500 } });
    const after = await chat.turn("The last question?");
    assert.match(JSON.stringify(after), /CONVERSATION SUMMARY/);
    assert.ok(after.length < 12, roles(after));
    assert.match(JSON.stringify(after.at(-1)), /The last question\?/);
    const { messages } = (await chat.send({ type: "get_messages" }, (e) => e.command === "get_messages")).data;
    assert.doesNotMatch(JSON.stringify(messages), /CONVERSATION SUMMARY/, "pi keeps what was said");
    // pi compacts: it takes the summary of Compactor, and asks no model.
    const asked = prompts.length;
    const { data } = await chat.send({ type: "compact" }, (e) => e.command === "compact");
    assert.match(data.summary, /CONVERSATION SUMMARY/);
    assert.equal(prompts.length, asked);
    const own = await chat.turn("And after that?");
    assert.match(JSON.stringify(own), /CONVERSATION SUMMARY/);
    assert.equal((await api(`${id}/view`)).messages.length, own.filter((m) => m.role !== "system").length);
    await chat.close();
  },

  async unreachable() {
    for (const [name, COMPACTOR_URL] of [["closed", closedURL], ["silent", silentURL]]) {
      const chat = new Chat(name, { COMPACTOR_URL, COMPACTOR_TIMEOUT: "50", COMPACTOR_RETRY_AFTER: "0" });
      await chat.turn(`Read ${chat.dir}/a.txt`);
      assert.equal(roles(await chat.turn("Again.")), "user assistant tool assistant user");
      const warnings = chat.events.filter((e) => /Compactor is not used/.test(JSON.stringify(e)));
      assert.equal(warnings.length, 1, JSON.stringify(warnings) + chat.log);
      await chat.close();
    }
  },
};

try {
  await Promise.all(process.argv.slice(2).map((name) => parts[name]()));
} finally {
  for (const server of [model, silent]) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(home, { recursive: true, force: true });
}
