// Drives generateText with settings of compactor.mjs against the server in COMPACTOR_URL.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { generateText, isStepCount, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";
import { compactor } from "./compactor.mjs";

const slow = { timeout: 60_000 }; // a busy machine
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const says = (text) => ({ content: [{ type: "text", text }], finishReason: { unified: "stop" }, usage, warnings: [] });
const calls = (...ids) => ({
  content: [
    { type: "reasoning", text: "hm", providerMetadata: { anthropic: { signature: "signed" } } },
    ...ids.map((id) => ({ type: "tool-call", toolCallId: id, toolName: "weather", input: JSON.stringify({ city: id }) })),
  ],
  finishReason: { unified: "tool-calls" }, usage, warnings: [],
});

/** A chat of an application that keeps all messages itself. */
class Chat {
  prompts = [];
  messages = [];
  constructor(settings, modelId = "gpt-4o") {
    this.settings = settings;
    this.answers = [];
    this.model = new MockLanguageModelV4({ modelId, doGenerate: async ({ prompt }) => {
      this.prompts.push(structuredClone(prompt));
      return this.answers.shift() ?? says("Done.");
    } });
  }
  async turn(text, ...answers) {
    this.answers = answers;
    this.messages.push({ role: "user", content: text });
    const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `rain in ${city} `.repeat(20) });
    const result = await generateText({
      model: this.model, messages: this.messages, tools: { weather }, stopWhen: isStepCount(5), ...this.settings,
    });
    this.messages.push(...result.responseMessages);
    return result;
  }
}

const headers = { Authorization: `Bearer ${process.env.COMPACTOR_KEY}`, "Content-Type": "application/json" };
async function api(path, body) {
  const request = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) };
  const answer = await fetch(`${process.env.COMPACTOR_URL}/v1/sessions/${path}`, request);
  assert.ok(answer.ok, `${path}: ${answer.status}`);
  return answer.json();
}
const seqs = async (session) => (await api(`${session}/messages?limit=500`)).items.map((m) => m.role).join(" ");

const compaction = { from: "view", pipeline: [{ strategy: "handoff", params: { protect_last_n: 4, tail_token_budget: 500 } }] };

/** A server before the server: what it was asked, and whether it answers. */
async function proxy() {
  const out = { up: true, requests: [] };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (!out.up) return response.destroy();
    const given = Object.entries(request.headers).filter(([name]) => /^(if-|content-type|authorization)/.test(name));
    const { method, url } = request;
    const answer = await fetch(process.env.COMPACTOR_URL + url, { method, headers: given, body: body || undefined });
    out.requests.push(`${method} ${answer.status}`);
    const text = answer.status === 304 ? undefined : await answer.text();
    response.writeHead(answer.status, { ETag: answer.headers.get("etag") ?? "" }).end(text);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.on("listening", resolve));
  const close = () => { server.closeAllConnections(); server.close(); };
  return Object.assign(out, { url: `http://127.0.0.1:${server.address().port}`, close });
}

const parts = {
  async turns() {
    const chat = new Chat(compactor("ai-turns", slow));
    await chat.turn("Hi");
    await chat.turn("Bern and Rome?", calls("Bern", "Rome"), says("Rain."));
    assert.deepEqual(chat.prompts.at(-1).map((m) => m.role), ["user", "assistant", "user", "assistant", "tool"]);
    assert.equal(chat.prompts.at(-1)[3].content[0].providerOptions.anthropic.signature, "signed", "the application's own messages");
    const all = "user assistant user assistant tool tool assistant";
    assert.equal(await seqs("ai-turns"), all);
    // Another process, with the same messages.
    chat.settings = compactor("ai-turns", slow);
    await chat.turn("And now?");
    assert.equal(await seqs("ai-turns"), all + " user assistant");
    // The user goes back to the second question.
    chat.messages.splice(2);
    await chat.turn("Something else");
    assert.deepEqual((await api("ai-turns/view")).messages.map((m) => m.content), ["Hi", "Done.", "Something else", "Done."]);
    assert.equal(chat.prompts.at(-1).length, 3);
  },

  async compaction() {
    const { requests, url, close } = await proxy();
    const chat = new Chat(compactor("ai-long", { ...slow, url }));
    const question = (i) => `Where is order #AB${i}? ` + "It should be there. ".repeat(60);
    for (let i = 0; i < 12; i++) await chat.turn(question(i), calls(`c${i}`, `d${i}`));
    await api("ai-long/compact?wait=30s", compaction);
    const before = chat.messages.length;
    assert.equal(before, 48);
    requests.length = 0;
    await chat.turn("And #AB11?", calls("x", "y"), calls("z"));
    const [first, , last] = chat.prompts.slice(-3);
    assert.match(JSON.stringify(first), /CONVERSATION SUMMARY/);
    assert.ok(first.length < before / 2, `${first.length} messages`);
    assert.deepEqual(first.at(-1).content, [{ type: "text", text: "And #AB11?" }]);
    assert.deepEqual(last.map((m) => m.role).slice(first.length), ["assistant", "tool", "assistant", "tool"], "the steps follow the view");
    assert.equal(last[first.length].content[0].type, "reasoning");
    assert.equal(JSON.stringify(last).split("[CONVERSATION SUMMARY").length, 2, "once");
    assert.equal(chat.messages.length, before + 6, "the application keeps everything");
    // The view was read once, as it has changed; the steps only appended.
    assert.deepEqual(requests, ["POST 200", "GET 200", "POST 200", "POST 200", "POST 200"]);
    const again = compactor("ai-long", { ...slow, url });
    requests.length = 0;
    for (let n = 0; n < 2; n++) await again.prepareStep({ messages: chat.messages, stepNumber: 0, model: chat.model });
    assert.deepEqual(requests, ["GET 200", "GET 304", "GET 304"]);
    // The user goes back to the first answer, which is in the summary: it is all told anew.
    chat.messages.splice(4);
    await chat.turn("Something else");
    assert.deepEqual(chat.prompts.at(-1).map((m) => m.role), ["user", "assistant", "tool", "assistant", "user"]);
    assert.equal((await api("ai-long/view")).messages.length, 1 + 1 + 2 + 1 + 2);
    close();
  },

  async unreachable() {
    const closed = createServer().listen(0, "127.0.0.1"), silent = createServer(() => {}).listen(0, "127.0.0.1");
    await Promise.all([closed, silent].map((s) => new Promise((resolve) => s.on("listening", resolve))));
    const urls = [closed, silent].map((s) => `http://127.0.0.1:${s.address().port}`);
    closed.close();
    for (const url of urls) {
      const warnings = [], session = `ai-away-${urls.indexOf(url)}`;
      const chat = new Chat(compactor(session, { url, timeout: 50, retryAfter: 0, warn: (w) => warnings.push(w) }));
      await chat.turn("One");
      await chat.turn("Two", calls("Bern"));
      assert.deepEqual(chat.prompts.at(-1).map((m) => m.role), ["user", "assistant", "user", "assistant", "tool"]);
      assert.equal(warnings.length, 1, warnings.join("\n"));
      // It is there again: what is missing is sent.
      chat.settings = compactor(session, slow);
      await chat.turn("Three");
      assert.equal(await seqs(session), "user assistant user assistant tool assistant user assistant");
    }
    silent.closeAllConnections();
    silent.close();
    // It goes away after a compaction: the view that is known, and what came after it.
    const warnings = [], away = await proxy();
    const chat = new Chat(compactor("ai-flaky", { ...slow, url: away.url, retryAfter: 0, warn: (w) => warnings.push(w) }));
    for (let i = 0; i < 12; i++) await chat.turn(`Where is order #AB${i}? ` + "It should be there. ".repeat(60));
    await api("ai-flaky/compact?wait=30s", compaction);
    await chat.turn("One");
    const known = chat.prompts.at(-1);
    assert.match(JSON.stringify(known), /CONVERSATION SUMMARY/);
    away.up = false;
    await chat.turn("Two");
    await chat.turn("Three");
    assert.deepEqual(chat.prompts.at(-1).slice(0, known.length), known);
    assert.deepEqual(chat.prompts.at(-1).slice(known.length).map((m) => m.role), ["assistant", "user", "assistant", "user"]);
    assert.equal(warnings.length, 1);
    away.up = true;
    await chat.turn("Four");
    const { items } = await api("ai-flaky/messages?kind=messages&limit=500");
    assert.deepEqual(items.map((m) => m.role), chat.messages.map((m) => m.role));
    away.close();
  },
};

await Promise.all(process.argv.slice(2).map((name) => parts[name]()));
