// A Session of the OpenAI Agents SDK that Compactor stores: it may grow for as long as it likes, and the
// model is sent its view. See README.md.
import { createHash, randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

export class CompactorSession {
  #o;
  #view = { items: [], ids: [] }; // as read last, with its etag
  #since = []; // items that were appended after it
  #pending = []; // appends that have not arrived: { key, items }
  #warned = false;
  #last = Promise.resolve();

  constructor(sessionId, options = {}) {
    const { COMPACTOR_URL, COMPACTOR_KEY } = process.env;
    this.#o = { url: COMPACTOR_URL ?? "http://127.0.0.1:8321", key: COMPACTOR_KEY, timeout: 2000, warn: console.warn, ...options };
    this.sessionId = sessionId;
  }

  /** The items that Compactor does not have yet, as it could not be reached. */
  get pending() { return this.#pending.flatMap((p) => p.items); }

  async getSessionId() { return this.sessionId; }

  getItems(limit) {
    return this.#inOrder(async () => {
      await this.#orGoOn("the history is read from memory", async () => { await this.#flush(); await this.#read(); });
      const all = [...this.#view.items, ...this.#since, ...this.pending];
      return structuredClone(limit === undefined ? all : limit > 0 ? all.slice(-limit) : []);
    });
  }

  addItems(items) { return this.#append(randomUUID(), items); }

  popItem() {
    return this.#inOrder(async () => {
      await this.#flush();
      await this.#read();
      const item = this.#view.items.at(-1);
      if (item) await this.#replace(this.#view.items.length - 1, []);
      return item;
    });
  }

  clearSession() {
    return this.#inOrder(async () => {
      this.#pending = [];
      await this.#read();
      if (this.#view.etag) await this.#call("PUT", "/view", { body: [], headers: { "If-Match": this.#view.etag } });
      await this.#read();
    });
  }

  /** Of a model that compacts by itself: the first item stands for what was before it. */
  replaceHistoryWithCompaction(items) {
    return this.#inOrder(async () => {
      await this.#flush();
      await this.#read();
      await this.#replace(0, items);
    });
  }

  applyHistoryTransaction({ operationId, transaction: t }) {
    if (!operationId?.trim()) throw new Error("operationId: want a text");
    if (t.type === "append_items") return this.#append(operationId, t.items);
    return this.#inOrder(async () => {
      await this.#flush();
      await this.#read();
      const replaces = createHash("sha256").update(JSON.stringify(t.expectedSuffix.map(toWire))).digest("hex");
      const { items } = this.#view, from = items.length - t.expectedSuffix.length;
      const same = from >= 0 && isDeepStrictEqual(items.slice(from).map(toWire), t.expectedSuffix.map(toWire));
      try { // with another etag than that of the view, only a repetition passes
        await this.#replace(Math.max(from, 0), t.replacement, { key: operationId, replaces, ...(!same && { etag: '"0-0"' }) });
      } catch (e) {
        throw [404, 412].includes(e.status) ? new Error("the end of the history is not the expected one", { cause: e }) : e;
      }
    });
  }

  /** The SDK calls it without force after each turn: a worker of Compactor compacts by itself, so nothing is to be done. */
  runCompaction({ force } = {}) {
    if (!force) return null;
    return this.#inOrder(async () => {
      await this.#flush();
      let { run } = await this.#call("POST", "/compact?wait=30s", { body: { from: "view" }, timeout: 35_000 });
      while (["queued", "running"].includes(run.status)) {
        await new Promise((resolve) => setTimeout(resolve, 500));
        run = await this.#call("GET", `/v1/runs/${run.run}`);
      }
      if (run.status === "failed") throw new Error(`the compaction failed: ${run.error}`);
      const inputTokens = run.input_tokens ?? 0, outputTokens = run.output_tokens ?? 0; // of the model that wrote the summary
      return { usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens } };
    });
  }

  #append(key, items) {
    return this.#inOrder(async () => {
      if (items.length) this.#pending.push({ key, items: structuredClone(items) });
      await this.#orGoOn("new items stay in memory", () => this.#flush());
    });
  }

  /** Sends what is pending, in order. What is refused is not sent again. */
  async #flush() {
    for (let p; (p = this.#pending[0]); this.#pending.shift()) {
      try {
        await this.#post(p.items, { key: p.key });
        this.#since.push(...p.items);
      } catch (e) {
        if (e.status) this.#pending.shift();
        throw e;
      }
    }
  }

  async #read() {
    const headers = { "If-None-Match": this.#view.etag };
    const view = await this.#call("GET", "/view?shape=responses&ids=true", { headers }).catch((e) => {
      if (e.status === 404) return { input: [], ids: [] }; // nothing was said yet
      throw e;
    });
    if (!view) return; // 304
    const system = view.instructions === undefined ? [] : [{ type: "message", role: "system", content: view.instructions }];
    const names = Object.fromEntries(view.input.filter((i) => i.name).map((i) => [i.call_id, i.name]));
    this.#view = { etag: view.etag, ids: view.ids ?? [], items: [...system, ...view.input].map((i) => fromWire(i, names)) };
    this.#since = [];
  }

  /**
   * Replaces the items of the view from an index on. Messages leave whole, with the calls of their results: what
   * was before the index is appended again.
   */
  async #replace(from, items, { key = randomUUID(), etag = this.#view.etag, replaces } = {}) {
    const { items: all, ids } = this.#view, is = (i, kind) => kind.test(all[i]?.type);
    let start = from;
    while (start > 0 && is(start, /_(result|output)$/)) start--;
    while (start > 0 && (ids[start - 1] === ids[start] || (is(start, /_call$/) && is(start - 1, /_call$|^reasoning$/)))) start--;
    const body = [...all.slice(start, from), ...items], instead = [...new Set(ids.slice(start))];
    if (replaces && !instead.length) instead.push("-"); // so that the etag counts
    if (body.length + instead.length) await this.#post(body, { key, etag, replaces, instead });
    await this.#read();
  }

  #post(items, { key, etag, replaces, instead = [] }) {
    const query = new URLSearchParams([["format", "responses"], ...instead.map((id) => ["instead_of", id])]);
    if (this.#o.model) query.set("model", this.#o.model);
    const body = items.map(toWire);
    if (replaces) body[0].agents = { ...body[0].agents, replaces };
    return this.#call("POST", "/messages?" + query, { body, headers: { "Idempotency-Key": key, "If-Match": etag } });
  }

  async #call(method, path, { body, headers, timeout = this.#o.timeout } = {}) {
    const { url, key, tenant } = this.#o;
    const session = path.startsWith("/v1/") ? "" : `/v1/sessions/${encodeURIComponent(this.sessionId)}`;
    const to = new URL(url.replace(/\/$/, "") + session + path);
    if (tenant) to.searchParams.set("tenant", tenant);
    const given = { Authorization: key && `Bearer ${key}`, "Content-Type": body && "application/json", ...headers };
    const answer = await fetch(to, {
      method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(timeout),
      headers: Object.fromEntries(Object.entries(given).filter(([, value]) => value)),
    });
    if (answer.status === 304) return null;
    const text = await answer.text();
    if (answer.ok) return Object.assign(JSON.parse(text), { etag: answer.headers.get("etag") });
    const error = new Error(`Compactor: ${answer.status} ${text}`);
    if (answer.status < 500 && answer.status !== 429) error.status = answer.status; // to be repeated otherwise
    throw error;
  }

  /** Goes on where Compactor does not answer, and says so once. Its refusals are errors. */
  async #orGoOn(what, work) {
    try {
      await work();
      this.#warned = false;
    } catch (e) {
      if (e.status) throw e;
      if (!this.#warned) this.#o.warn(`Compactor does not answer, ${what}: ${e.cause?.message ?? e.message}`);
      this.#warned = true;
    }
  }

  /** Runs one operation after the other. */
  #inOrder(work) {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }
}

const plain = (value) => JSON.parse(JSON.stringify(value)); // without undefined fields

/** An item as the Responses API has it. What that has no place for is kept in the field agents. */
function toWire({ type = "message", callId, name, content, arguments: args, output, providerData, rawContent, role, ...rest }) {
  const more = (fields) => plain({ agents: Object.keys(plain(fields)).length ? fields : undefined });
  switch (type) {
    case "message":
      return { type, role, content, ...more({ ...rest, providerData }) };
    case "function_call":
      return { type, call_id: callId, name, arguments: args, ...more({ ...rest, providerData }) };
    case "function_call_result": {
      const text = output?.type === "text" && !output.providerData;
      const extra = more({ ...rest, name, providerData, text: text || undefined });
      return { type: "function_call_output", call_id: callId, output: text ? output.text : output, ...extra };
    }
    case "reasoning": {
      const summary = (content ?? []).map(({ text }) => ({ type: "summary_text", text }));
      const extra = more({ content, rawContent, providerData });
      return plain({ type, id: rest.id, summary, encrypted_content: providerData?.encrypted_content, ...extra });
    }
    default: { // calls of hosted tools and the like
      const item = plain({ type, callId, name, content, arguments: args, output, providerData, rawContent, role, ...rest });
      const text = typeof output === "string" ? output : JSON.stringify(output);
      return plain({ type: type.replace(/_call_result$/, "_call_output"), call_id: callId, output: text, agents: { item } });
    }
  }
}

function fromWire({ type, role, content, call_id: callId, name, arguments: args, output, id, agents = {} }, names) {
  const { text, replaces, item, ...more } = agents;
  if (item) return item;
  switch (type) {
    case "function_call":
      return { type, callId, name, arguments: args, ...more };
    case "function_call_output":
      return {
        type: "function_call_result", callId, name: names[callId] ?? "unknown", status: "completed",
        output: typeof output === "string" && (text ?? !("name" in more)) ? { type: "text", text: output } : output, ...more,
      };
    case "reasoning":
      return { type, ...(id && { id }), content: [], ...more };
    default:
      if (role !== "assistant") return { type, role: role === "developer" ? "system" : role, content, ...more };
      if (typeof content === "string") content = [{ type: "output_text", text: content }];
      return { type, role, status: "completed", content, ...more };
  }
}
