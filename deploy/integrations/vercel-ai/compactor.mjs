// Settings of generateText and streamText of the AI SDK: what the model is sent is the view that Compactor has of
// the messages. See README.md.
import { createHash } from "node:crypto";

export function compactor(session, options) {
  const follower = new Follower(session, options);
  let host = [], seen = 0; // all messages of the host; how many the last step had
  async function view(model) {
    const shown = await follower.view(host.map(toChat), model?.modelId ?? model);
    return shown?.map(({ entry, bare, message }) => {
      if (message) return fromChat(message, host);
      return bare ? withoutReasoning(host[entry]) : host[entry];
    });
  }
  return {
    async prepareStep({ messages, stepNumber, model, initialMessages }) {
      // What a step was given carries forward, but in version 6.
      host = stepNumber === 0 || !initialMessages ? [...messages] : [...host, ...messages.slice(seen)];
      const shown = await view(model);
      seen = shown?.length ?? messages.length;
      return shown && { messages: shown };
    },
    async onStepEnd({ response, finishReason }) {
      if (finishReason === "tool-calls") return; // the next step has them
      host = [...host, ...response.messages];
      await view();
    },
  };
}

/** A message of the SDK as chat-completions messages, each result of a tool as one. */
function toChat({ role, content }) {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const of = (type) => parts.filter((p) => p.type === type), text = of("text").map((p) => p.text).join("\n");
  if (role === "tool") {
    return of("tool-result").map(({ toolCallId, output: { type, value } }) =>
      ({ role, tool_call_id: toolCallId, content: /text$/.test(type) ? value : stable(value ?? type) }));
  }
  if (role !== "assistant") return [{ role, content: text && of("text").length === parts.length ? text : parts.map(toPart) }];
  const calls = of("tool-call").map(({ toolCallId: id, toolName: name, input = {} }) =>
    ({ id, type: "function", function: { name, arguments: stable(input) } }));
  // What providers sign counts as reasoning: Compactor takes it out of the view where it does not hold any more.
  const thought = [...of("reasoning"), ...of("tool-call").filter((p) => p.providerOptions)];
  const reasoning = thought.map(({ text = "", providerOptions: signed }) =>
    ({ type: "reasoning.text", text, ...(signed && { signature: stable(signed) }) }));
  return [{
    role, content: text || (calls.length ? null : ""), ...(calls.length && { tool_calls: calls }),
    ...(reasoning.length && { reasoning_details: reasoning }),
  }];
}

function toPart({ type, text, image, data = image, filename, mediaType = image && "image/png" }) {
  if (type === "text") return { type, text };
  if (!mediaType.startsWith("image")) return { type: "text", text: `[${filename ?? mediaType}]` };
  if (data instanceof URL || /^(https?|data):/.test(data)) return { type: "image_url", image_url: { url: String(data) } };
  const base64 = typeof data === "string" ? data : Buffer.from(data).toString("base64");
  return { type: "image_url", image_url: { url: `data:${mediaType};base64,${base64}` } };
}

/** A message that Compactor wrote, such as a summary or a shorter result, in the SDK's form. */
function fromChat({ role, content, tool_calls: calls = [], tool_call_id: toolCallId }, host) {
  const text = typeof content === "string" ? content : (content ?? []).map((p) => p.text ?? `[${p.type}]`).join("\n");
  if (role === "tool") {
    const call = host.flatMap((m) => m.content).find((p) => p.type === "tool-call" && p.toolCallId === toolCallId);
    const toolName = call?.toolName ?? "unknown";
    return { role, content: [{ type: "tool-result", toolCallId, toolName, output: { type: "text", value: text } }] };
  }
  if (role !== "assistant") return { role: role === "developer" ? "system" : role, content: text };
  const parts = calls.map((c) => ({ type: "tool-call", toolCallId: c.id, toolName: c.function.name, input: parsed(c.function.arguments) }));
  return { role, content: text ? [{ type: "text", text }, ...parts] : parts };
}

function withoutReasoning(message) {
  const content = message.content.filter((p) => p.type !== "reasoning").map(({ providerOptions, ...p }) => p);
  return { ...message, content };
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
