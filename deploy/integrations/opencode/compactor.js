// A plugin of opencode: what the model is sent is the view that Compactor has of the session. opencode keeps all
// messages. See README.md.
import { createHash } from "node:crypto";

export const Compactor = async ({ client }, options = {}) => {
  const followers = new Map(); // of sessions
  const warn = (message) => { // not to the console, which the terminal's pages are on
    client.app.log({ body: { service: "compactor", level: "warn", message } }).catch(() => {});
    client.tui.showToast({ body: { message, variant: "warning" } }).catch(() => {});
  };
  return {
    "experimental.chat.messages.transform": async (_, { messages }) => {
      const info = messages.findLast((m) => m.info.role === "user")?.info;
      if (!info) return;
      const id = info.sessionID, follower = followers.get(id) ?? new Follower(id, { warn, ...options });
      followers.set(id, follower);
      const shown = await follower.view(messages.map(toChat), info.model?.modelID);
      if (shown) messages.splice(0, messages.length, ...fromShown(shown, [...messages]));
    },
    "experimental.session.compacting": async (_, { context }) => {
      context.push("A message that begins with [CONVERSATION SUMMARY stands for earlier messages: carry over what it says.");
    },
  };
};

const isSigned = (part) => part.type === "reasoning" || (part.type === "tool" && part.metadata);

/** A message of opencode as chat-completions messages, each result of a tool as one. */
function toChat({ info: { role }, parts }) {
  const of = (type) => parts.filter((p) => p.type === type && !p.ignored), text = of("text").map((p) => p.text).join("\n");
  if (role === "user") {
    const files = of("file").map(({ mime, url, filename }) =>
      (mime.startsWith("image/") ? { type: "image_url", image_url: { url } } : { type: "text", text: `[${filename ?? mime}]` }));
    return [{ role, content: files.length ? [...(text ? [{ type: "text", text }] : []), ...files] : text }];
  }
  const tools = of("tool"), calls = tools.map(({ callID: id, tool: name, state: { input = {} } }) =>
    ({ id, type: "function", function: { name, arguments: stable(input) } }));
  // What providers sign counts as reasoning: Compactor takes it out of the view where it does not hold any more.
  const details = parts.filter(isSigned).map(({ text = "", metadata }) =>
    ({ type: "reasoning.text", text, ...(metadata && { signature: stable(metadata) }) }));
  const results = tools.map(({ callID, state: { output, error } }) =>
    ({ role: "tool", tool_call_id: callID, content: output ?? error ?? "[interrupted]" }));
  return [{
    role, content: text || (calls.length ? null : ""), ...(calls.length && { tool_calls: calls }),
    ...(details.length && { reasoning_details: details }),
  }, ...results];
}

/** The messages of a view in opencode's form: its own ones, and those that Compactor wrote. */
function fromShown(shown, host) {
  const out = [], tools = new Map(host.flatMap((of) => of.parts.filter((p) => p.type === "tool").map((p) => [p.callID, { ...p, of }])));
  for (const { entry, bare, message: m } of shown) {
    if (!m) {
      const parts = host[entry].parts.filter((p) => p.type !== "reasoning").map(({ metadata, ...p }) => p);
      out.push(bare ? { ...host[entry], parts } : host[entry]);
      continue;
    }
    const text = typeof m.content === "string" ? m.content : (m.content ?? []).map((p) => p.text ?? `[${p.type}]`).join("\n");
    const result = m.role === "tool" && out.at(-1)?.parts.find((p) => p.callID === m.tool_call_id);
    if (result) {
      result.state = { ...result.state, status: "completed", output: text, title: "", metadata: {}, time: { start: 0, end: 0 } };
      continue;
    }
    const caller = (m.tool_calls ?? []).map((c) => tools.get(c.id)?.of).find(Boolean);
    const like = caller ?? host.find(({ info }) => info.role === m.role) ?? host[0];
    const ids = { messageID: m.id, sessionID: like.info.sessionID };
    out.push({ info: { ...like.info, id: m.id, error: undefined }, parts: [
      ...(text ? [{ ...ids, id: `${m.id}-text`, type: "text", text, synthetic: true }] : []),
      ...(m.tool_calls ?? []).map(({ id: callID, function: f }) => {
        const { of, ...part } = tools.get(callID) ?? { id: `${m.id}-${callID}`, type: "tool", callID, tool: f.name, state: {} };
        return { ...part, ...ids, state: { ...part.state, input: parsed(f.arguments) } };
      }),
    ] });
  }
  return out;
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
