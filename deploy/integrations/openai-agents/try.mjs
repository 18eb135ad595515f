// Drives the SDK's own runner with sessions of compactor.mjs against the server in COMPACTOR_URL.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Agent, run, tool, Usage, setTracingDisabled } from "@openai/agents";
import { z } from "zod";
import { CompactorSession } from "./compactor.mjs";

setTracingDisabled(true);
const open = (id, more) => new CompactorSession(id, { timeout: 60_000, ...more }); // on a busy machine

const status = "completed", name = "weather";
const said = (text) => ({ type: "message", role: "assistant", status, id: "FAKE_ID", content: [{ type: "output_text", text }] });
const asked = (text) => ({ type: "message", role: "user", content: text });
const called = (callId, city) => ({ type: "function_call", callId, name, status, arguments: JSON.stringify({ city }) });
const result = (callId, text) => ({ type: "function_call_result", callId, name, status, output: { type: "text", text } });

/** A model that plays answers and keeps what it was sent. */
class Scripted {
  requests = [];
  constructor(...answers) { this.answers = answers; }
  async getResponse({ input }) {
    this.requests.push(structuredClone(input));
    return { usage: new Usage(), output: this.answers.shift() ?? [said("Done.")], responseId: "resp_1" };
  }
  async *getStreamedResponse() { throw new Error("not here"); }
}

function agent(model, more = {}) {
  const parameters = z.object({ city: z.string() });
  const weather = tool({ name, description: "The weather", parameters, execute: ({ city }) => `rain in ${city}` });
  return new Agent({ name: "a", model, tools: [weather], ...more });
}

const parts = {
  async turns() {
    const model = new Scripted([said("Hello.")], [called("c1", "Bern"), called("c2", "Rome")], [said("Rain in both.")]);
    const session = open("turns", { model: "gpt-4o" });
    await run(agent(model), "Hi", { session });
    await run(agent(model), "The weather in Bern and Rome?", { session });
    const last = model.requests.at(-1);
    assert.deepEqual(last.map((i) => i.role ?? i.callId), ["user", "assistant", "user", "c1", "c2", "c1", "c2"]);
    // Another process reads what this one wrote.
    const items = await open("turns").getItems();
    assert.deepEqual(items, [...last, said("Rain in both.")].map((i) => JSON.parse(JSON.stringify(i))));
    assert.deepEqual(await session.getItems(2), items.slice(-2));
    assert.deepEqual(await session.getItems(0), []);
    assert.equal(await session.runCompaction({ responseId: "resp_1" }), null);
  },

  async items() { // whatever the SDK has, comes back as it was
    const given = [
      { type: "message", role: "system", content: "Be brief." },
      asked("Hi"),
      { ...asked(), content: [{ type: "input_text", text: "Look" }, { type: "input_image", image: "https://a.example", detail: "low" }] },
      { type: "reasoning", id: "rs_1", content: [{ type: "input_text", text: "hm" }], providerData: { encrypted_content: "x" } },
      { ...said("I look."), providerData: { a: 1 } },
      { ...called("c1", "Bern"), id: "fc_1", providerData: { b: [2] } },
      called("c2", "Rome"),
      result("c1", "rain"),
      { ...result("c2", ""), output: "sun" },
      { type: "hosted_tool_call", id: "ws_1", name: "web_search_call", status: "completed", output: "found", providerData: { c: 3 } },
      { type: "shell_call", callId: "s1", status: "completed", action: { commands: ["ls"] } },
      { type: "shell_call_output", callId: "s1", output: [{ stdout: "a", stderr: "", outcome: { type: "exit", exitCode: 0 } }] },
      { type: "message", role: "assistant", status: "incomplete", content: [{ type: "refusal", refusal: "No." }] },
      asked("Go on"),
    ];
    const session = open("items");
    await session.addItems(given);
    assert.deepEqual(await open("items").getItems(), given);
    await session.clearSession();
    await session.addItems([]);
    given.splice(3, 1); // before a call without its result, signed reasoning lets nothing be changed
    await session.addItems(given);
    for (let n = given.length; n > 0; n--) {
      assert.deepEqual(await session.popItem(), given[n - 1]);
      assert.deepEqual(await session.getItems(), given.slice(0, n - 1), `after ${n}`);
    }
    assert.equal(await session.popItem(), undefined);
    await session.addItems(given);
    await session.clearSession();
    assert.deepEqual(await session.getItems(), []);
    const compacted = [{ type: "compaction", id: "cmp_1", encrypted_content: "x" }, asked("More")];
    for (let n = 0; n < 2; n++) { // from an empty history, and from one
      await session.replaceHistoryWithCompaction(compacted);
      assert.deepEqual(await session.getItems(), compacted);
    }
  },

  async transactions() {
    const session = open("transactions");
    const appending = (operationId, ...items) => ({ operationId, transaction: { type: "append_items", items } });
    const replacing = (operationId, expectedSuffix, ...replacement) =>
      ({ operationId, transaction: { type: "replace_suffix", expectedSuffix, replacement } });
    const begin = [asked("Hi"), said("Hello.")], other = [said("Good day."), asked("And now?"), said("Nothing.")];
    const append = appending("op-1", ...begin), replace = replacing("op-2", begin.slice(1), ...other), end = [begin[0], ...other];
    const same = async (want) => assert.deepEqual(await open("transactions").getItems(), want);
    const refused = (args, why) => assert.rejects(session.applyHistoryTransaction(args), why);
    await session.applyHistoryTransaction(append);
    await open("transactions").applyHistoryTransaction(append); // again, by another process
    await same(begin);
    await refused(appending("op-1", asked("Bye")), /409/);
    await refused({ ...replace, operationId: "op-1" }, /409/);
    await refused(replacing("op-3", [said("Bye.")], said("x")), /not the expected/);
    await refused(replacing("op-3", [...begin, ...begin], said("x")), /not the expected/);
    await same(begin);
    await session.applyHistoryTransaction(replace);
    await same(end);
    await open("transactions").applyHistoryTransaction(replace);
    await refused(replacing("op-2", [said("Bye.")], ...other), /409/);
    await refused(replacing("op-2", begin.slice(1), said("x")), /409/);
    await same(end);
    // One of two results: the calls and the other result stay.
    const calls = [called("c1", "Bern"), called("c2", "Rome"), result("c1", "rain")];
    await session.addItems([...calls, result("c2", "rain")]);
    await session.applyHistoryTransaction(replacing("op-4", [result("c2", "rain")], result("c2", "sun")));
    await same([...end, ...calls, result("c2", "sun")]);
    await assert.rejects(open("none").applyHistoryTransaction(replace), /not the expected/);
  },

  async guarded() { // the SDK's own transactions: a guardrail trips, and the turn is kept as it was blocked
    const session = open("guarded");
    const guard = { name: "g", execute: async () => ({ tripwireTriggered: true, outputInfo: {} }) };
    const blocked = agent(new Scripted([said("A secret.")]), { outputGuardrails: [guard] });
    await assert.rejects(run(blocked, "Tell me", { session }));
    const left = await session.getItems();
    assert.equal(left[0].content, "Tell me");
    await run(agent(new Scripted([said("Nothing.")])), "Something else", { session });
    assert.equal((await session.getItems()).at(-1).content[0].text, "Nothing.");
  },

  async compaction() {
    const session = open("long", { model: "gpt-4" });
    const items = [];
    for (let i = 0; i < 40; i++) {
      items.push(asked(`Where is order #AB${i}? ` + "It should be there. ".repeat(30)));
      items.push(called(`c${i}`, "Bern"), result(`c${i}`, "Somebody looks at it. ".repeat(40)));
      items.push(said(`Order #AB${i} is open. ` + "Wait. ".repeat(20)));
    }
    await session.addItems(items);
    const { usage } = await session.runCompaction({ force: true });
    assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
    const after = await session.getItems();
    assert.ok(after.length < items.length / 2, `${after.length} items`);
    assert.match(JSON.stringify(after), /CONVERSATION SUMMARY/);
    assert.deepEqual(after.at(-1), items.at(-1));
    const model = new Scripted([said("It is open.")]);
    await run(agent(model), "And #AB39?", { session });
    assert.deepEqual(model.requests[0].slice(0, -1), after);
    assert.equal((await open("long").getItems()).length, after.length + 2);
  },

  async unreachable() {
    const closed = createServer().listen(0, "127.0.0.1"), silent = createServer(() => {}).listen(0, "127.0.0.1");
    await Promise.all([closed, silent].map((s) => new Promise((resolve) => s.on("listening", resolve))));
    const address = (s) => `http://127.0.0.1:${s.address().port}`;
    const urls = [address(closed), address(silent)];
    closed.close();
    for (const url of urls) {
      const warnings = [], model = new Scripted([said("One.")], [said("Two.")]);
      const session = open("away", { url, timeout: 50, warn: (w) => warnings.push(w) });
      await run(agent(model), "First", { session });
      await run(agent(model), "Second", { session });
      assert.deepEqual(model.requests[1].map((i) => i.role), ["user", "assistant", "user"], "the second turn has the first one");
      assert.equal(warnings.length, 1, warnings.join("\n"));
      assert.equal(session.pending.length, 4);
      await assert.rejects(session.popItem());
    }
    silent.closeAllConnections();
    silent.close();
    // A server that goes away and comes back: nothing is lost, and nothing is there twice.
    let up = true;
    const proxy = createServer(async (request, response) => {
      const body = []; for await (const b of request) body.push(b);
      const { authorization, "idempotency-key": key = "" } = request.headers;
      const answer = await fetch(process.env.COMPACTOR_URL + request.url, {
        method: request.method, headers: { "Content-Type": "application/json", authorization, "Idempotency-Key": key },
        body: request.method === "POST" ? Buffer.concat(body) : undefined,
      });
      if (!up) return response.destroy(); // the answer is lost
      response.writeHead(answer.status, { ETag: answer.headers.get("etag") ?? "" }).end(await answer.text());
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => proxy.on("listening", resolve));
    const warnings = [], session = open("back", { url: address(proxy), warn: (w) => warnings.push(w) });
    await session.addItems([asked("1")]);
    up = false;
    await session.addItems([asked("2"), said("two")]);
    await session.addItems([asked("3")]);
    assert.equal(session.pending.length, 3);
    up = true;
    await session.addItems([said("three")]);
    assert.equal(session.pending.length, 0);
    assert.deepEqual(await open("back").getItems(), [asked("1"), asked("2"), said("two"), asked("3"), said("three")]);
    assert.equal(warnings.length, 1);
    proxy.closeAllConnections();
    proxy.close();
    await assert.rejects(open("x", { key: "cpt_wrong" }).getItems(), /401/);
  },
};

await Promise.all(process.argv.slice(2).map((name) => parts[name]()));
