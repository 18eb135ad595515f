// Appends to a session, reads its view, asks again for what has not changed, and compacts it, which needs a key
// of scope operate in COMPACTOR_KEY; the rest needs append.
const session = (process.env.COMPACTOR_URL ?? "http://127.0.0.1:8321") + "/v1/sessions/support-4711";

async function call(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const answer = await fetch(session + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { Authorization: `Bearer ${process.env.COMPACTOR_KEY ?? ""}`, "Content-Type": "application/json", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!answer.ok && answer.status !== 304) throw new Error(((await answer.json()) as { detail: string }).detail);
  return answer;
}

const messages = [
  { id: "m1", role: "user", content: "Where is my order?" },
  { id: "m2", role: "assistant", content: "On its way." },
];
for (let i = 0; i < 2; i++) {
  // A batch that is sent again is appended once.
  const appended = await call("/messages?model=gpt-4o", messages, { "Idempotency-Key": "turn-1" });
  console.log("appended:", await appended.json());
}
const view = await call("/view");
console.log("prompt:", ((await view.json()) as { messages: unknown[] }).messages);
const again = await call("/view", undefined, { "If-None-Match": view.headers.get("ETag") ?? "" });
console.log("unchanged:", again.status);
const run = await call("/compact?wait=10s", {});
console.log("run:", await run.json());

export {};
