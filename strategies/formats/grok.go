package formats

// grok describes the chat_history.jsonl of xAI's Grok CLI. xAI publishes no description: these are the files of
// its version for Grok 4.5 and 4.6, as jazzyalex/agent-sessions has them and other public readers agree.
var grok = table{
	kinds: []kind{
		{when: "type=system content", role: "=system", from: []source{{at: "content"}}, ignore: "type"},
		{when: "type=user content", role: "=user", meta: "synthetic_reason", from: []source{{at: "content"}}, ignore: "type prompt_index prior_turn_interrupt synthetic_reason"},
		{
			when: "type=assistant content?", role: "=assistant", model: "model_id", from: []source{{at: "content"}, {at: "tool_calls"}},
			ignore: "type model_fingerprint reasoning_effort",
		},
		{when: "type=reasoning summary#[", role: "=assistant", leads: true, from: []source{{at: "content"}, {at: "summary"}}, ignore: "type id status"},
		{when: "type=tool_result tool_call_id", role: "=tool", call: "tool_call_id", from: []source{{at: "content", text: isResult}}, ignore: "type"},
		{when: "type=backend_tool_call", other: "type"},
	},
	parts: []rule{
		{when: "type=text", text: "text"},
		{when: "type=summary_text|reasoning_text", is: isReasoning, text: "text"},
		{when: "type=image", is: isMedia, url: "url"},
		{when: "name", is: isCall, id: "id", name: "name", args: "arguments"},
	},
}
