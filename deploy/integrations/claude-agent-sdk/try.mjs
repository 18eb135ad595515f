// Drives the SDK's own readers, and its CLI with a model that plays answers, over a store of compactor.mjs and the
// server in COMPACTOR_URL.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  InMemorySessionStore, deleteSession, forkSession, getSessionInfo, getSessionMessages, importSessionToStore, listSessions, query,
} from "@anthropic-ai/claude-agent-sdk";
import { compacted } from "./compactor.mjs";

const dir = mkdtempSync(join(tmpdir(), "claude-"));
process.env.CLAUDE_CONFIG_DIR = join(dir, ".claude"); // where the SDK looks for transcripts
const projectKey = dir.replace(/[^a-zA-Z0-9]/g, "-");
const slow = { timeout: 60_000, model: "gpt-4" }; // a busy machine, and a small window
const text = (m) => (typeof m.message.content === "string" ? m.message.content : m.message.content.map((b) => b.text ?? b.type).join(" "));

/** A session of entries as the CLI writes them: a block an entry. */
class Chat {
  key = { projectKey, sessionId: randomUUID() };
  entries = [];
  add(type, content, more = {}) {
    const uuid = randomUUID(), n = this.entries.length;
    const api = type === "assistant" && { id: more.id ?? `msg_${n}`, type: "message", model: "claude-x" };
    this.entries.push({
      type, uuid, parentUuid: more.parent ?? this.entries.at(-1)?.uuid ?? null, sessionId: this.key.sessionId, cwd: dir, version: "2.1.0",
      userType: "external", isSidechain: false, timestamp: new Date(1.8e12 + n * 1000).toISOString(),
      message: { ...api, role: type, content },
    });
    return this;
  }
  turns(n, size = 300) {
    for (let i = 0; i < n; i++) {
      this.add("user", `Question ${i}? ` + "Please look. ".repeat(size / 3));
      this.add("assistant", [{ type: "tool_use", id: `toolu_${this.entries.length}`, name: "Read", input: { path: `a${i}` } }]);
      this.add("user", [{ type: "tool_result", tool_use_id: `toolu_${this.entries.length - 1}`, content: "line ".repeat(size) }]);
      this.add("assistant", [{ type: "text", text: `Answer ${i}.` }]);
    }
    return this;
  }
  read(store) { return getSessionMessages(this.key.sessionId, { sessionStore: store, dir }); }
}

const headers = { Authorization: `Bearer ${process.env.COMPACTOR_KEY}` };
const sessions = `${process.env.COMPACTOR_URL}/v1/sessions/`;
const api = async (chat, path) => (await fetch(sessions + chat.key.sessionId + path, { headers })).json();
const viewOf = async (chat) => (await api(chat, "/view?ids=true")).messages;

const parts = {
  async readers() {
    const inner = new InMemorySessionStore(), store = compacted(inner, slow), chat = new Chat().turns(12);
    const entries = [...chat.entries, { type: "custom-title", customTitle: "Twelve", sessionId: chat.key.sessionId }];
    await store.append(chat.key, entries.slice(0, 9));
    await store.append(chat.key, entries.slice(9));
    assert.deepEqual(inner.getEntries(chat.key), entries);
    await store.compact(chat.key);
    const all = await store.load(chat.key);
    assert.deepEqual(all.slice(0, entries.length), entries, "no entry was rewritten");
    assert.deepEqual(all.slice(entries.length).map((e) => e.subtype ?? e.isCompactSummary), ["compact_boundary", true]);
    assert.deepEqual(await store.load(chat.key), all, "once");
    const read = await chat.read(store);
    assert.match(text(read[0]), /CONVERSATION SUMMARY/);
    assert.ok(read.length < 30, `${read.length} messages`);
    const tail = read.slice(1).map((m) => m.uuid);
    assert.deepEqual(tail, chat.entries.map((e) => e.uuid).filter((uuid) => tail.includes(uuid)), "what stayed is as it was");
    assert.equal(tail.at(-1), chat.entries.at(-1).uuid);
    // The session goes on, and another process compacts it again.
    chat.turns(12);
    await store.append(chat.key, chat.entries.slice(48));
    const other = compacted(inner, slow);
    await other.compact(chat.key);
    const again = await chat.read(other);
    assert.match(text(again[0]), /CONVERSATION SUMMARY/);
    assert.equal(again.at(-1).uuid, chat.entries.at(-1).uuid);
    assert.equal((await other.load(chat.key)).filter((e) => e.isCompactSummary).length, 2);
    assert.equal((await getSessionInfo(chat.key.sessionId, { sessionStore: store, dir })).customTitle, "Twelve");
    assert.deepEqual((await listSessions({ sessionStore: store, dir })).map((s) => s.sessionId), [chat.key.sessionId]);
    const fork = new Chat();
    fork.key.sessionId = (await forkSession(chat.key.sessionId, { sessionStore: store, dir })).sessionId;
    assert.deepEqual((await fork.read(store)).map(text), again.map(text));
    assert.equal((await viewOf(fork)).length, (await viewOf(chat)).length);
    await deleteSession(chat.key.sessionId, { sessionStore: store, dir });
    assert.equal(await store.load(chat.key), null);
  },

  async calls() { // five entries, two of them calls at once; a turn that was taken back; a compaction by the host
    const inner = new InMemorySessionStore(), store = compacted(inner, { timeout: 60_000 }), chat = new Chat();
    const use = (id) => [{ type: "tool_use", id, name: "Read", input: {} }];
    const result = (id) => ({ type: "tool_result", tool_use_id: id, content: id });
    chat.add("user", "Read both.").add("assistant", use("toolu_a"), { id: "m" }).add("assistant", use("toolu_b"), { id: "m" });
    chat.add("user", [result("toolu_a"), result("toolu_b")]).add("assistant", [{ type: "text", text: "Read." }]);
    for (const e of chat.entries) await store.append(chat.key, [e]);
    await compacted(inner, { timeout: 60_000 }).append(chat.key, []); // which sends what is there already
    const [asked, first, , results, answer] = chat.entries.map((e) => e.uuid); // calls at once are one message
    assert.deepEqual((await viewOf(chat)).map((m) => m.id), [asked, first, results, results + "#2", answer]);
    assert.equal((await store.load(chat.key)).length, 5, "nothing to add");
    chat.add("user", "No, another question.", { parent: asked }).add("assistant", [{ type: "text", text: "Which?" }]);
    await store.append(chat.key, chat.entries.slice(5));
    await store.load(chat.key);
    assert.deepEqual((await viewOf(chat)).map((m) => m.id), [asked, ...chat.entries.slice(5).map((e) => e.uuid)]);
    const boundary = { ...chat.entries[0], type: "system", subtype: "compact_boundary", uuid: randomUUID(), compactMetadata: {} };
    chat.add("user", "They read two files.", { parent: boundary.uuid });
    await store.append(chat.key, [boundary, { ...chat.entries.at(-1), isCompactSummary: true }]);
    await store.load(chat.key);
    assert.deepEqual((await viewOf(chat)).map((m) => m.content), ["They read two files."]);
    assert.equal((await store.load(chat.key)).length, 9, "nothing to add");
  },

  async imported() { // 30,000 characters in a local transcript, and a subagent's
    const { writeFileSync, mkdirSync } = await import("node:fs");
    const chat = new Chat().turns(10), sub = new Chat().turns(1), folder = join(process.env.CLAUDE_CONFIG_DIR, "projects", projectKey);
    const lines = (entries) => entries.map((e) => JSON.stringify(e) + "\n").join("");
    mkdirSync(join(folder, chat.key.sessionId, "subagents"), { recursive: true });
    writeFileSync(join(folder, chat.key.sessionId + ".jsonl"), lines(chat.entries));
    writeFileSync(join(folder, chat.key.sessionId, "subagents", "agent-1.jsonl"), lines(sub.entries));
    const store = compacted(new InMemorySessionStore(), slow);
    for (let n = 0; n < 2; n++) await importSessionToStore(chat.key.sessionId, store, { dir, batchSize: 7 });
    assert.deepEqual(await store.listSubkeys(chat.key), ["subagents/agent-1"]);
    await store.compact(chat.key);
    assert.match(text((await chat.read(store))[0]), /CONVERSATION SUMMARY/);
    assert.deepEqual(await store.load({ ...chat.key, subpath: "subagents/agent-1" }), [...sub.entries, ...sub.entries].slice(0, 8));
  },

  async unreachable() {
    const closed = createServer().listen(0, "127.0.0.1"), silent = createServer(() => {}).listen(0, "127.0.0.1");
    await Promise.all([closed, silent].map((s) => new Promise((resolve) => s.on("listening", resolve))));
    const urls = [closed, silent].map((s) => `http://127.0.0.1:${s.address().port}`);
    closed.close();
    const chat = new Chat().turns(12), inner = new InMemorySessionStore();
    for (const url of urls) {
      const warnings = [], store = compacted(inner, { url, timeout: 50, retryAfter: 0, warn: (w) => warnings.push(w) });
      await store.append(chat.key, chat.entries.splice(0, 8));
      assert.equal((await store.load(chat.key)).length, 8 * (urls.indexOf(url) + 1));
      assert.equal((await chat.read(store)).length, 8 * (urls.indexOf(url) + 1));
      assert.equal(warnings.length, 1, warnings.join("\n"));
      if (url === urls[0]) await assert.rejects(store.compact(chat.key));
    }
    silent.closeAllConnections();
    silent.close();
    // It is there again: the next append brings all that is missing.
    const store = compacted(inner, slow);
    await store.append(chat.key, chat.entries);
    assert.deepEqual((await api(chat, "")).messages, 48);
    const refused = [], wrong = compacted(inner, { ...slow, key: "cpt_wrong", warn: (w) => refused.push(w) });
    assert.equal((await wrong.load(chat.key)).length, 48);
    assert.match(refused.join(), /401/);
  },

  async cli() {
    const requests = [];
    const model = createServer(async (request, response) => {
      let raw = ""; for await (const part of request) raw += part;
      if (!/\/v1\/messages(\?|$)/.test(request.url)) return response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
      const body = JSON.parse(raw), said = `Answer ${requests.push(body)}.`;
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      const send = (type, fields) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
      const usage = { input_tokens: 10, output_tokens: 5 }, message = { type: "message", role: "assistant", model: body.model };
      send("message_start", { message: { ...message, id: "msg_" + randomUUID(), content: [], stop_reason: null, usage } });
      send("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
      send("content_block_delta", { index: 0, delta: { type: "text_delta", text: said } });
      send("content_block_stop", { index: 0 });
      send("message_delta", { delta: { stop_reason: "end_turn" }, usage });
      send("message_stop", {});
      response.end();
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => model.on("listening", resolve));
    const env = {
      PATH: process.env.PATH, HOME: dir, CLAUDE_CONFIG_DIR: process.env.CLAUDE_CONFIG_DIR, ANTHROPIC_API_KEY: "none",
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${model.address().port}`,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1",
    };
    const inner = new InMemorySessionStore(), sessionStore = compacted(inner, slow), chat = new Chat();
    async function turn(prompt, resume) {
      for await (const m of query({ prompt, options: { cwd: dir, env, sessionStore, resume, tools: [], settingSources: [] } })) {
        if (m.type !== "result") continue;
        assert.equal(m.subtype, "success");
        chat.key.sessionId = m.session_id;
      }
    }
    await turn("Remember the word zebra-4711. " + "It matters. ".repeat(3000));
    await turn("And what is left?", chat.key.sessionId);
    await sessionStore.compact(chat.key);
    await turn("Which word?", chat.key.sessionId);
    const sent = JSON.stringify(requests.at(-1).messages);
    assert.match(sent, /CONVERSATION SUMMARY/);
    assert.match(sent, /Which word\?/);
    assert.ok(sent.length < JSON.stringify(requests.at(-2).messages).length / 2, `${sent.length} bytes`);
    assert.equal((await chat.read(sessionStore)).filter((m) => /Which word/.test(text(m))).length, 1);
    model.closeAllConnections();
    model.close();
  },
};

try {
  await Promise.all(process.argv.slice(2).map((name) => parts[name]()));
} finally {
  rmSync(dir, { recursive: true, force: true });
}
