// Compacts sessions with OpenAIResponsesCompactionSession, of which only the base URL is another.
// Prints the items before and after, and what a refused compaction threw and left.
import { MemorySession, OpenAIResponsesCompactionSession } from "@openai/agents";
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });

function history() {
  const items = [];
  for (let i = 0; i < 30; i++) {
    items.push({ type: "message", role: "user", content: `Where is order #AB${i}? ` + "It should be there. ".repeat(12) });
    items.push({
      type: "message", role: "assistant", status: "completed",
      content: [{ type: "output_text", text: `Order #AB${i} is open. ` + "Somebody looks at it. ".repeat(12) }],
    });
  }
  return items;
}

async function session(options) {
  const underlyingSession = new MemorySession();
  const s = new OpenAIResponsesCompactionSession({ client, underlyingSession, model: "gpt-compactor", ...options });
  await s.addItems(history());
  return s;
}

const good = await session({ compactionMode: "input" });
const before = (await good.getItems()).length;
const { usage } = await good.runCompaction({ force: true });
const items = await good.getItems();
await good.addItems([{ type: "message", role: "user", content: "And now?" }]);
await good.runCompaction({ force: true }); // what was compacted is read again
const twice = await good.getItems();

const bad = await session({});
let error;
try {
  await bad.runCompaction({ responseId: "resp_1", compactionMode: "previous_response_id", force: true });
} catch (e) {
  error = { status: e.status, code: e.code, message: e.message };
}
console.log(JSON.stringify({ before, usage, items, twice, error, left: (await bad.getItems()).length }));
