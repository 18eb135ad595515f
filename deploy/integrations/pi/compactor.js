// An extension of pi: what the model is sent is the view that Compactor has of the session. pi keeps all messages. See
// README.md.
import { createHash } from "node:crypto";

export default function (pi) {
  const { COMPACTOR_TENANT: tenant, COMPACTOR_TIMEOUT = 2000, COMPACTOR_RETRY_AFTER = 30_000 } = process.env;
  const options = { tenant, timeout: Number(COMPACTOR_TIMEOUT), retryAfter: Number(COMPACTOR_RETRY_AFTER) };
  const followers = new Map(); // of sessions
  async function view(ctx, host) {
    const warn = (text) => (ctx.hasUI ? ctx.ui.notify(text, "warning") : console.error(text));
    const id = ctx.sessionManager.getSessionId();
    if (!followers.has(id)) followers.set(id, new Follower(id, { ...options, warn }));
    return followers.get(id).view(host.map(toChat), ctx.model?.id);
  }

  pi.on("context", async ({ messages: host }, ctx) => {
    const shown = await view(ctx, host);
    if (!shown) return;
    return { messages: shown.map(({ entry, bare, message }) => {
      if (message) return fromChat(message, host);
      return bare ? withoutReasoning(host[entry]) : host[entry];
    }) };
  });

  // pi is about to summarize what Compactor may have summarized already.
  pi.on("session_before_compact", async ({ preparation, signal }, ctx) => {
    const owned = ctx.sessionManager.buildSessionProjection().entries.flatMap(({ sourceEntry, messages }) =>
      messages.filter((m) => m.role !== "system").map((message) => ({ id: sourceEntry.id, message })));
    const host = owned.map((o) => o.message), shown = await view(ctx, host);
    if (!shown || signal.aborted) return;
    let kept = 0; // how many of the last messages stay as they are
    while (kept < shown.length && shown.at(-1 - kept).entry === host.length - 1 - kept && !shown.at(-1 - kept).bare) kept++;
    while (kept > 0 && host.at(-kept).role === "toolResult") kept--; // its call is before it
    const before = shown.slice(0, shown.length - kept);
    if (!kept || !before.some((s) => s.message)) return;
    const summary = before.map(({ entry, message }) => (message ? textOf(message) : toChat(host[entry]).map(said).join("\n"))).join("\n\n");
    return { compaction: { summary, firstKeptEntryId: owned.at(-kept).id, tokensBefore: preparation.tokensBefore } };
  });
}

const blocksOf = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : content ?? []);
const said = (m) => `${m.role}: ${textOf(m)}`;
const textOf = ({ content }) => blocksOf(content).map((b) => b.text ?? `[${b.type}]`).join("\n");

/** A message of pi as one of chat-completions. */
function toChat(m) {
  const blocks = blocksOf(m.content), of = (type) => blocks.filter((b) => b.type === type);
  const text = of("text").map((b) => b.text).join("\n");
  if (m.role === "assistant") {
    const calls = of("toolCall").map(({ id, name, arguments: args }) =>
      ({ id, type: "function", function: { name, arguments: stable(args) } }));
    // What providers sign counts as reasoning: Compactor takes it out of the view where it does not hold any more.
    const thought = [...of("thinking"), ...of("toolCall").filter((c) => c.thoughtSignature)];
    const details = thought.map(({ thinking = "", thinkingSignature: own, thoughtSignature: signature = own }) =>
      ({ type: "reasoning.text", text: thinking, ...(signature && { signature }) }));
    return [{
      role: "assistant", content: text || (calls.length ? null : ""), ...(calls.length && { tool_calls: calls }),
      ...(details.length && { reasoning_details: details }),
    }];
  }
  // Summaries of pi, and commands that the user has run, have no content.
  const words = m.content === undefined ? m.summary ?? [m.command, m.output].filter(Boolean).join("\n") : text;
  const images = of("image").map(({ mimeType, data }) => ({ type: "image_url", image_url: { url: `data:${mimeType};base64,${data}` } }));
  const content = images.length ? [...(words ? [{ type: "text", text: words }] : []), ...images] : words;
  return [m.role === "toolResult" ? { role: "tool", tool_call_id: m.toolCallId, content } : { role: "user", content }];
}

/** A message that Compactor wrote, such as a summary or a shorter result, in pi's form. */
function fromChat(m, host) {
  const text = textOf(m), content = text ? [{ type: "text", text }] : [], timestamp = host.at(-1).timestamp;
  const calls = host.filter((h) => h.role === "assistant").flatMap((of) => of.content.map((b) => ({ ...b, of })));
  if (m.role === "tool") {
    const toolName = calls.find((c) => c.id === m.tool_call_id)?.name ?? "unknown";
    return { role: "toolResult", toolCallId: m.tool_call_id, toolName, content, isError: false, timestamp };
  }
  const like = calls.find((c) => m.tool_calls?.some(({ id }) => c.id === id))?.of ?? host.findLast((h) => h.role === "assistant");
  if (m.role !== "assistant" || !like) return { role: "user", content, timestamp };
  const own = (m.tool_calls ?? []).map(({ id, function: f }) => ({ type: "toolCall", id, name: f.name, arguments: parsed(f.arguments) }));
  return { ...like, content: [...content, ...own], stopReason: own.length ? "toolUse" : "stop", errorMessage: undefined };
}

function withoutReasoning(m) {
  return { ...m, content: m.content.filter((b) => b.type !== "thinking").map(({ thoughtSignature, textSignature, ...b }) => b) };
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
