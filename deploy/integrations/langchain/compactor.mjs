// Middleware for agents of LangChain: what the model is sent is the view that Compactor has of the messages. The state
// keeps all of them. See README.md.
import { createHash } from "node:crypto";
import { AIMessage, HumanMessage, SystemMessage, ToolMessage, createMiddleware } from "langchain";

export function compactor({ session = (runtime) => runtime.configurable?.thread_id, ...options } = {}) {
  const followers = new Map(); // of sessions, those used last at the end
  function followerOf(runtime) {
    const id = typeof session === "function" ? session(runtime) : session;
    if (!id) throw new Error("compactor: give a session, or call the agent with a thread_id");
    const follower = followers.get(id) ?? new Follower(id, options);
    followers.delete(id);
    followers.set(id, follower);
    if (followers.size > 1000) followers.delete(followers.keys().next().value);
    return follower;
  }
  return createMiddleware({
    name: "Compactor",
    async wrapModelCall(request, handler) {
      const { messages: host, model } = request;
      const shown = await followerOf(request.runtime).view(host.map(toChat), model.model ?? model.modelName);
      const messages = shown?.map(({ entry, bare, message }) => {
        if (message) return fromChat(message, host);
        return bare ? withoutReasoning(host[entry]) : host[entry];
      });
      return handler(messages ? { ...request, messages } : request);
    },
    async afterAgent(state, runtime) { // the last answer, so that a run need not wait for the next question
      await followerOf(runtime).view(state.messages.map(toChat));
    },
  });
}

const isReasoning = (block) => /thinking|reasoning/.test(block.type);

/** A message of LangChain as one of chat-completions. */
function toChat(m) {
  const blocks = typeof m.content === "string" ? [{ type: "text", text: m.content }] : m.content;
  const said = blocks.filter((b) => !isReasoning(b) && b.type !== "tool_use"), text = said.map((b) => b.text).join("\n");
  const plain = said.every((b) => b.type === "text");
  const content = plain ? text : said.map((b) => (/^(text|image_url)$/.test(b.type) ? b : { type: "text", text: `[${b.type}]` }));
  if (m.type === "tool") return [{ role: "tool", tool_call_id: m.tool_call_id, content }];
  if (m.type === "system") return [{ role: "system", content }];
  if (m.type !== "ai") return [{ role: "user", content }];
  const calls = (m.tool_calls ?? []).map(({ id, name, args }) => ({ id, type: "function", function: { name, arguments: stable(args) } }));
  // What providers sign counts as reasoning: Compactor takes it out of the view where it does not hold any more.
  const { reasoning, reasoning_content: thought } = m.additional_kwargs ?? {};
  const details = [...blocks.filter(isReasoning), ...[reasoning, thought].filter(Boolean)].map((b) =>
    (typeof b === "string" ? { type: "reasoning.text", text: b } : { type: "reasoning.text", text: "", signature: stable(b) }));
  return [{
    role: "assistant", content: text || !plain ? content : calls.length ? null : "", ...(calls.length && { tool_calls: calls }),
    ...(details.length && { reasoning_details: details }),
  }];
}

/** A message that Compactor wrote, such as a summary or a shorter result, in LangChain's form. */
function fromChat({ id, role, content, tool_calls: calls = [], tool_call_id }, host) {
  content ??= "";
  if (role === "tool") {
    const name = host.flatMap((m) => m.tool_calls ?? []).find((c) => c.id === tool_call_id)?.name;
    return new ToolMessage({ id, content, tool_call_id, name });
  }
  if (role === "user") return new HumanMessage({ id, content });
  if (role !== "assistant") return new SystemMessage({ id, content });
  const tool_calls = calls.map(({ id, function: { name, arguments: args } }) => ({ id, name, args: parsed(args) }));
  return new AIMessage({ id, content, tool_calls });
}

function withoutReasoning(m) {
  const { reasoning, reasoning_content, ...additional_kwargs } = m.additional_kwargs;
  const content = typeof m.content === "string" ? m.content : m.content.filter((b) => !isReasoning(b));
  return new AIMessage({ id: m.id, name: m.name, content, tool_calls: m.tool_calls, additional_kwargs });
}

// From here on the same in each adapter that changes prompts.

/** Tells Compactor the messages of a host, which stay with it, and has the view of them. */
class Follower {
  #session; #o; #known; #busy = Promise.resolve(); #rest = 0; #warned = false;

  constructor(session, options = {}) {
    const { COMPACTOR_URL: url = "http://127.0.0.1:8321", COMPACTOR_KEY: key } = process.env;
    this.#session = session;
    this.#o = { url, key, timeout: 2000, retryAfter: 30_000, warn: console.warn, ...options };
  }

  /**
   * Takes all that the host has, in order: for each entry its chat-completions messages. Returns what to send to the
   * model: entries by their index, bare if they are to lose their reasoning, and messages of Compactor; or undefined if
   * that is what the host has. Where Compactor does not answer, it is the last view, and what came after it.
   */
  view(entries, model) {
    let id = ""; // each id depends on what was before, so that all after an edited message are new ones
    const given = entries.map((messages) => {
      id = createHash("sha256").update(id + stable(messages)).digest("hex").slice(0, 24);
      return messages.map((m, i) => ({ id: `h-${id}${i ? `.${i}` : ""}`, ...m }));
    });
    const turn = this.#busy.then(async () => {
      if (Date.now() >= this.#rest) {
        try {
          const signal = AbortSignal.timeout(this.#o.timeout);
          await this.#follow(given, model, signal).catch((e) => {
            if (e.status !== 412) throw e;
            this.#known = undefined; // another process has changed the session
            return this.#follow(given, model, signal);
          });
          this.#warned = false;
        } catch (e) {
          this.#rest = Date.now() + this.#o.retryAfter;
          if (!this.#warned) this.#o.warn(`Compactor is not used, the agent goes on: ${e.cause?.message ?? e.message}`);
          this.#warned = true;
        }
      }
      return this.#shown(given);
    });
    this.#busy = turn.catch(() => {});
    return turn;
  }

  /** Sends what Compactor lacks, takes back what the host has no more, and reads the view again if it has changed. */
  async #follow(given, model, signal) {
    const known = (this.#known ??= await this.#read(signal)), all = given.flat(), ids = new Set(all.map((m) => m.id));
    const gone = known.messages.map((m) => m.id).filter((id) => id.startsWith("h-") && !ids.has(id));
    const after = known.messages.slice(known.messages.findLastIndex((m) => ids.has(m.id)) + 1);
    if (gone.length && after.some((m) => !m.id.startsWith("h-"))) { // a summary is of what the host has changed, or compacted
      await this.#call("PUT", "/view", signal, all, { "If-Match": known.etag });
      this.#known = await this.#read(signal);
      return;
    }
    const fresh = this.#unsent(given);
    const send = async (messages, instead) => {
      const query = new URLSearchParams([["format", "chat"], ["model", model ?? ""], ...instead.map((id) => ["instead_of", id])]);
      const sent = await this.#call("POST", `/messages?${query}`, signal, messages, known.etag && { "If-Match": known.etag });
      if (sent.revision === known.revision) known.messages.push(...messages);
      else known.changed = true;
      known.etag = `"${sent.revision}-${sent.last_seq}"`;
    };
    for (let i = 0; i < gone.length; i += 100) await send([], gone.slice(i, i + 100));
    for (let i = 0; i < fresh.length; i += 200) await send(fresh.slice(i, i + 200), []);
    if (known.changed || !(gone.length + fresh.length)) this.#known = (await this.#read(signal, !known.changed && known)) ?? known;
  }

  #unsent(given) {
    const had = new Set(this.#known.messages.map((m) => m.id));
    return given.slice(given.findLastIndex((messages) => messages.some((m) => had.has(m.id))) + 1).flat();
  }

  /** The view; null if it has the revision of a known one. */
  async #read(signal, known) {
    const headers = known?.etag && { "If-None-Match": `"${known.revision}"` };
    return this.#call("GET", "/view?ids=true", signal, undefined, headers).catch((e) => {
      if (e.status === 404) return { revision: 0, messages: [] }; // nothing was said yet
      throw e;
    });
  }

  #shown(given) {
    if (!this.#known) return undefined;
    const messages = [...this.#known.messages, ...this.#unsent(given)], out = [];
    const entryOf = new Map(given.flatMap((parts, i) => parts.map((m) => [m.id, i])));
    for (let i = 0; i < messages.length; i++) {
      const entry = entryOf.get(messages[i].id), parts = given[entry] ?? [];
      const shown = messages.slice(i, i + parts.length);
      if (parts.length && parts.every((m, k) => m.id === shown[k]?.id)) {
        out.push({ entry, bare: parts.some((m, k) => m.reasoning_details && !shown[k].reasoning_details) });
        i += parts.length - 1;
      } else {
        out.push({ message: messages[i] });
      }
    }
    return out.length === given.length && out.every(({ entry, bare }, i) => entry === i && !bare) ? undefined : out;
  }

  async #call(method, path, signal, body, headers) {
    const { url, key, tenant } = this.#o;
    const to = new URL(`${url.replace(/\/$/, "")}/v1/sessions/${encodeURIComponent(this.#session)}${path}`);
    if (tenant) to.searchParams.set("tenant", tenant);
    const given = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }), ...headers };
    const answer = await fetch(to, { method, signal, headers: given, body: body && JSON.stringify(body) });
    if (answer.status === 304) return null;
    const text = await answer.text();
    if (answer.ok) return { ...JSON.parse(text), etag: answer.headers.get("etag") };
    throw Object.assign(new Error(`${answer.status} ${text}`), { status: answer.status });
  }
}

/** JSON that does not depend on the order of keys. */
function stable(value) {
  const sorted = (_, v) => (v && typeof v === "object" && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort()) : v);
  return JSON.stringify(value, sorted);
}

function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
}
