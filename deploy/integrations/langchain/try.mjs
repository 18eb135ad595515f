// Drives agents of LangChain with the middleware of compactor.mjs against the server in COMPACTOR_URL.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { MemorySaver } from "@langchain/langgraph";
import { AIMessage, createAgent, tool } from "langchain";
import { z } from "zod";
import { compactor } from "./compactor.mjs";

const slow = { timeout: 60_000 }; // a busy machine
const compaction = { from: "view", pipeline: [{ strategy: "handoff", params: { protect_last_n: 4, tail_token_budget: 500 } }] };

/** A model that plays answers and keeps what it was sent. */
class Scripted extends BaseChatModel {
  model = "gpt-4o";
  prompts = [];
  answers = [];
  _llmType() { return "scripted"; }
  bindTools() { return this; }
  async _generate(messages) {
    this.prompts.push(messages);
    const message = this.answers.shift() ?? new AIMessage("Done.");
    return { generations: [{ text: message.text, message }] };
  }
}

const thinking = { type: "thinking", thinking: "hm", signature: "signed" };
const name = "weather";
const calls = (...ids) => new AIMessage({ content: [thinking], tool_calls: ids.map((id) => ({ id, name, args: { city: id } })) });

/** An agent whose state is kept by a checkpointer. */
class Chat {
  saver = new MemorySaver();
  model = new Scripted({});
  constructor(thread, options) {
    this.thread = thread;
    this.use(options);
  }
  use(options) {
    const schema = z.object({ city: z.string() });
    const weather = tool(({ city }) => `rain in ${city} `.repeat(20), { name, description: "The weather", schema });
    const { model, saver: checkpointer } = this;
    this.agent = createAgent({ model, tools: [weather], middleware: [compactor(options)], checkpointer, systemPrompt: "Help." });
  }
  async turn(content, ...answers) {
    this.model.answers = answers;
    const { messages } = await this.agent.invoke({ messages: [{ role: "user", content }] }, { configurable: { thread_id: this.thread } });
    this.state = messages;
  }
  types(n = -1) { return this.model.prompts.at(n).map((m) => m.type).join(" "); }
}

const headers = { Authorization: `Bearer ${process.env.COMPACTOR_KEY}`, "Content-Type": "application/json" };
async function api(path, body) {
  const request = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) };
  const answer = await fetch(`${process.env.COMPACTOR_URL}/v1/sessions/${path}`, request);
  assert.ok(answer.ok, `${path}: ${answer.status}`);
  return answer.json();
}
const roles = async (session) => (await api(`${session}/messages?kind=messages&limit=500`)).items.map((m) => m.role).join(" ");

const parts = {
  async turns() {
    const chat = new Chat("lc-turns", slow);
    await chat.turn("Hi");
    await chat.turn("Bern and Rome?", calls("Bern", "Rome"), new AIMessage("Rain."));
    assert.equal(chat.types(), "system human ai human ai tool tool");
    assert.deepEqual(chat.model.prompts.at(-1)[4].content, [thinking], "the agent's own messages");
    const all = "user assistant user assistant tool tool assistant";
    assert.equal(await roles("lc-turns"), all);
    chat.use(slow); // another process
    await chat.turn("And now?");
    assert.equal(await roles("lc-turns"), all + " user assistant");
    await assert.rejects(chat.agent.invoke({ messages: [] }, {}), /thread_id/);
  },

  async compaction() {
    const chat = new Chat("lc-long", slow);
    for (let i = 0; i < 12; i++) await chat.turn(`Where is order #AB${i}? ` + "It should be there. ".repeat(60), calls(`c${i}`, `d${i}`));
    assert.equal(chat.state.length, 60);
    await api("lc-long/compact?wait=30s", compaction);
    await chat.turn("And #AB11?", calls("x"));
    const [first, last] = chat.model.prompts.slice(-2);
    assert.match(first.map((m) => m.text).join(), /CONVERSATION SUMMARY/);
    assert.ok(first.length < 20, `${first.length} messages`);
    assert.equal(first.at(-1).text, "And #AB11?");
    assert.deepEqual(last.slice(first.length).map((m) => m.type), ["ai", "tool"]);
    assert.deepEqual(last[first.length].content, [thinking]);
    // The state has all messages and no summary.
    assert.equal(chat.state.length, 64);
    assert.doesNotMatch(chat.state.map((m) => m.text).join(), /CONVERSATION SUMMARY/);
    assert.equal((await roles("lc-long")).split(" ").length, 64);
  },

  async unreachable() {
    const closed = createServer().listen(0, "127.0.0.1"), silent = createServer(() => {}).listen(0, "127.0.0.1");
    await Promise.all([closed, silent].map((s) => new Promise((resolve) => s.on("listening", resolve))));
    const urls = [closed, silent].map((s) => `http://127.0.0.1:${s.address().port}`);
    closed.close();
    for (const [n, url] of urls.entries()) {
      const warnings = [], chat = new Chat(`lc-away-${n}`, { url, timeout: 50, retryAfter: 0, warn: (w) => warnings.push(w) });
      await chat.turn("One");
      await chat.turn("Two", calls("Bern"));
      assert.equal(chat.types(), "system human ai human ai tool");
      assert.equal(warnings.length, 1, warnings.join("\n"));
      chat.use(slow); // it is there again: what is missing is sent
      await chat.turn("Three");
      assert.equal(await roles(`lc-away-${n}`), "user assistant user assistant tool assistant user assistant");
    }
    silent.closeAllConnections();
    silent.close();
  },
};

await Promise.all(process.argv.slice(2).map((name) => parts[name]()));
