// An application with LangChain's own Postgres history: write N turns with calls, read the messages of the prompt, or clear them.
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"

const [modules, url, path, table, todo, count = "0"] = process.argv.slice(2)
const require = createRequire(modules + "/")
const from = (name) => import(pathToFileURL(require.resolve(name)).href)
const { PostgresChatMessageHistory } = await from("@langchain/community/stores/message/postgres")
const { HumanMessage, AIMessage, ToolMessage } = await from("@langchain/core/messages")
const pg = (await from("pg")).default

const pool = new pg.Pool({ connectionString: url, options: `-c search_path=${path}` })
const history = new PostgresChatMessageHistory({ tableName: table, sessionId: "s", pool })
if (todo === "write") {
  for (let i = 0; i < Number(count); i++) {
    await history.addMessages([
      new HumanMessage(`Question ${i}: where is order ${1000 + i}?`),
      new AIMessage({ content: "", tool_calls: [{ id: `a${i}`, name: "find_order", args: { order: 1000 + i } }] }),
      new ToolMessage({ content: "It left the warehouse. ".repeat(30), tool_call_id: `a${i}`, name: "find_order" }),
      new AIMessage(`Answer ${i}: it is on its way.`),
    ])
  }
} else if (todo === "clear") {
  await history.clear()
} else {
  const messages = await history.getMessages()
  console.log(JSON.stringify(messages.map((m) => ({
    type: m.getType(), content: m.content, calls: (m.tool_calls ?? []).map((c) => c.id), answers: m.tool_call_id,
  }))))
}
await pool.end()
