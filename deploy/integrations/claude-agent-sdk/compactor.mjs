// A SessionStore of the Claude Agent SDK around the one that you have: Compactor follows each session, and
// what it compacts becomes a compact_boundary and a summary, appended to your store. See README.md.
import { createHash } from "node:crypto";
import { getSessionMessages } from "@anthropic-ai/claude-agent-sdk";

export function compacted(inner, options = {}) {
  const { COMPACTOR_URL: url = "http://127.0.0.1:8321", COMPACTOR_KEY: key } = process.env;
  const defaults = { url, key, timeout: 2000, retryAfter: 30_000, warn: console.warn };
  const o = { ...defaults, ...options };
  const inStep = new Set(); // sessions of which Compactor has all entries
  const queues = new Map(); // of sessions: the end of the work on each
  const waits = new Map(); // of sessions, and of "" for all: when Compactor is asked again
  let warned = false;

  async function call(key, method, path, body, headers = {}) {
    const tenant = typeof o.tenant === "function" ? o.tenant(key.projectKey) : o.tenant;
    const session = path.startsWith("/v1/") ? "" : `/v1/sessions/${encodeURIComponent(key.sessionId)}`;
    const url = new URL(o.url.replace(/\/$/, "") + session + path);
    if (tenant) url.searchParams.set("tenant", tenant);
    const answer = await fetch(url, {
      method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(Math.max(30_000, o.timeout)),
      headers: { "Content-Type": "application/json", ...(o.key && { Authorization: `Bearer ${o.key}` }), ...headers },
    });
    const text = await answer.text();
    if (answer.ok) return Object.assign(JSON.parse(text), { etag: answer.headers.get("etag") });
    throw Object.assign(new Error(`Compactor: ${answer.status} ${text}`), { status: answer.status });
  }

  const view = (key) => call(key, "GET", "/view?ids=true").catch((e) => {
    if (e.status === 404) return { messages: [] };
    throw e;
  });

  /** Appends the messages of entries. One that is there already stays as it is. */
  async function send(key, entries) {
    const model = o.model ?? entries.findLast((e) => e.message?.model)?.message.model ?? "";
    const messages = entries.flatMap((e) => messagesOf(key, e));
    for (let i = 0; i < messages.length; i += 500) {
      await call(key, "POST", `/messages?format=anthropic&model=${encodeURIComponent(model)}`, messages.slice(i, i + 500));
    }
  }

  /**
   * Sends what Compactor lacks, takes out of its view what the readers of the SDK leave out, and returns its messages,
   * each with its entries: calls at once, an entry each, are one message there.
   */
  async function follow(key, entries) {
    let now = await view(key);
    const sources = new Map(entries.flatMap((e) => messagesOf(key, e).flatMap((m) => [m.id, ...callsOf(m)].map((id) => [id, e]))));
    const of = (m) => [...new Set([m.id, ...(m.tool_calls ?? []).map((c) => "call " + c.id)].map((id) => sources.get(id)))].filter(Boolean);
    const known = new Set(now.messages.flatMap(of)), last = entries.findLastIndex((e) => known.has(e));
    await send(key, entries.slice(last + 1));
    if (last + 1 < entries.length) now = await view(key);
    inStep.add(key.sessionId);
    const chain = await chainOf(key, entries);
    // A summary of the host stands first where it has compacted later than Compactor.
    const first = entries.find((e) => e.uuid === chain[0] && e.isCompactSummary);
    const begins = now.messages.findIndex((m) => m.id === first?.uuid);
    const stays = now.messages.filter((m, i) => (of(m).length ? of(m).some((e) => chain.includes(e.uuid)) : i >= begins));
    if (stays.length < now.messages.length) {
      await call(key, "PUT", "/view", stays, { "If-Match": now.etag });
      now = await view(key);
    }
    return { chain, messages: now.messages.map((m) => ({ ...m, entries: of(m) })) };
  }

  /** The entries that compact a session as Compactor has it; none if the readers of the SDK have the same already. */
  async function boundary(key, entries, { messages, chain }) {
    const ids = new Set(messages.flatMap((m) => [m.id, ...(m.tool_calls ?? []).map((c) => "call " + c.id)]));
    const whole = (e) => messagesOf(key, e).every((m) => [m.id, ...callsOf(m)].some((id) => ids.has(id)));
    let start = messages.length;
    while (start > 0 && messages[start - 1].entries.length && messages[start - 1].entries.every(whole)) start--;
    while (messages[start]?.role === "tool") start++; // its call is before it
    const kept = new Set(messages.slice(start).flatMap((m) => m.entries)), tail = entries.filter((e) => kept.has(e)).map((e) => e.uuid);
    const said = new Set(entries.filter((e) => messagesOf(key, e).length).map((e) => e.uuid));
    if (chain.every((uuid) => !said.has(uuid) || tail.includes(uuid))) return [];
    const text = messages.slice(0, start).map((m) => (m.entries.length ? `${m.role}: ` : "") + textOf(m)).join("\n\n");
    const last = entries.findLast((e) => e.uuid), [a, b] = [1, 2].map((n) => uuidOf(key.sessionId, text, tail[0], n));
    const { cwd, version, gitBranch, userType } = entries.findLast((e) => e.cwd) ?? {};
    const at = { sessionId: key.sessionId, timestamp: new Date().toISOString(), isSidechain: false, cwd, version, gitBranch, userType };
    const common = { ...at, compactor: { session: key.sessionId } }; // a fork has it, too, with another session
    const preservedMessages = { anchorUuid: b, uuids: tail };
    return [
      {
        ...common, type: "system", subtype: "compact_boundary", uuid: a, parentUuid: null, logicalParentUuid: last.uuid, isMeta: false,
        content: "Conversation compacted", level: "info",
        compactMetadata: { trigger: "auto", preTokens: 0, ...(tail.length && { preservedMessages }) },
      },
      {
        ...common, type: "user", uuid: b, parentUuid: a, isCompactSummary: true, isVisibleInTranscriptOnly: true,
        message: { role: "user", content: text || "[Earlier messages are left out.]" },
      },
    ].map((e) => JSON.parse(JSON.stringify(e)));
  }

  /** Does work on a session after the work before, and waits for it until the deadline. It goes on behind that. */
  async function within(key, work, otherwise) {
    const done = (queues.get(key.sessionId) ?? Promise.resolve()).then(work);
    queues.set(key.sessionId, done.catch(() => {}));
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(reject, o.timeout, new Error(`no answer within ${o.timeout} ms`));
    });
    try {
      const out = await Promise.race([done, late]);
      warned = false;
      return out;
    } catch (e) {
      inStep.delete(key.sessionId);
      waits.set(e.status ? key.sessionId : "", Date.now() + o.retryAfter);
      if (!warned) o.warn(`Compactor does not follow the sessions, which go on without: ${e.cause?.message ?? e.message}`);
      warned = true;
      return otherwise;
    } finally {
      clearTimeout(timer);
    }
  }

  const waiting = (key) => [key.sessionId, ""].some((id) => Date.now() < waits.get(id));

  async function compactedBy(key, before) {
    const entries = await inner.load(key);
    if (!entries) return entries;
    const now = await follow(key, entries);
    const added = await boundary(key, entries, (await before?.(now)) ?? now);
    if (added.length) await inner.append(key, added);
    return [...entries, ...added];
  }

  const store = {
    async append(key, entries) {
      await inner.append(key, entries);
      if (key.subpath || waiting(key)) return;
      await within(key, async () => {
        if (inStep.has(key.sessionId)) return send(key, entries);
        await follow(key, await inner.load(key));
      });
    },

    async load(key) {
      const entries = await inner.load(key);
      if (!entries || key.subpath || waiting(key)) return entries;
      return within(key, () => compactedBy(key), entries);
    },

    /** Compacts a session now, which needs a key of scope operate. Errors are thrown. */
    async compact(key) {
      await compactedBy(key, async () => {
        let { run } = await call(key, "POST", "/compact?wait=25s", { from: "view" });
        while (["queued", "running"].includes(run.status)) {
          await new Promise((resolve) => setTimeout(resolve, 500));
          run = await call(key, "GET", `/v1/runs/${run.run}`);
        }
        if (run.status === "failed") throw new Error(`the compaction failed: ${run.error}`);
        return follow(key, await inner.load(key));
      });
    },
  };
  for (const method of ["listSessions", "listSessionSummaries", "listSubkeys", "delete"]) {
    if (inner[method]) store[method] = (...args) => inner[method](...args);
  }
  return store;
}

/** The uuids of the messages that the SDK's own reader takes from entries. */
async function chainOf(key, entries) {
  const sessionStore = { append: async () => {}, load: async () => entries };
  return (await getSessionMessages(key.sessionId, { sessionStore, dir: process.cwd() })).map((m) => m.uuid);
}

/** The messages of an entry, with ids: each result of a tool is one. Summaries that Compactor wrote are there already. */
function messagesOf(key, { type, uuid, timestamp, isSidechain, message, compactor }) {
  if (!["user", "assistant"].includes(type) || !uuid || isSidechain || !message?.content || compactor?.session === key.sessionId) return [];
  const { role, content } = message, blocks = Array.isArray(content) ? content : [];
  const results = blocks.filter((b) => b.type === "tool_result"), rest = blocks.filter((b) => b.type !== "tool_result");
  const contents = [...results.map((b) => [b]), ...(Array.isArray(content) ? (rest.length ? [rest] : []) : [content])];
  return contents.map((content, i) => ({ id: i ? `${uuid}#${i + 1}` : uuid, role, content, created_at: timestamp }));
}

/** Names of the calls of a message. */
const callsOf = ({ content }) => (Array.isArray(content) ? content : []).filter((b) => b.type === "tool_use").map((b) => "call " + b.id);

function textOf({ content, tool_calls: calls = [] }) {
  const parts = typeof content === "string" ? [content] : (content ?? []).map((p) => p.text ?? `[${p.type}]`);
  return [...parts, ...calls.map((c) => `[called ${c.function?.name} with ${c.function?.arguments}]`)].join("\n");
}

function uuidOf(...parts) {
  const hex = createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
