package formats

import "github.com/sessionstore/compactor/strategies/chat"

// opencode describes what "opencode export" writes: {"info", "messages": [{"info", "parts"}]}. Facts:
// anomalyco/opencode 007a940 (packages/opencode/src/session/message-v2.ts, cli/cmd/export.ts).
var opencode = table{
	list:  "messages",
	roles: map[string]chat.Role{"user": chat.RoleUser, "assistant": chat.RoleAssistant},
	doc:   kind{session: "info.id", title: "info.title", ignore: "info todos"},
	kinds: []kind{{
		when: "info.role parts", role: "info.role", id: "info.id", at: "info.time.created", model: "info.modelID info.model.modelID",
		summary: "info.summary=true", from: []source{{at: "parts"}},
		ignore: "info.sessionID info.parentID info.time info.mode info.agent info.path info.cost info.tokens info.finish info.providerID info.variant " +
			"info.model info.fallbackModels info.format info.summary info.tools",
	}},
	parts: []rule{
		{when: "type=text ignored=true", is: isNothing},
		{when: "type=text", text: "text", ignore: opencodePart + " synthetic ignored metadata"},
		{when: "type=reasoning", is: isReasoning, text: "text", signature: "metadata.anthropic.signature", ignore: opencodePart},
		{
			when: "type=tool callID", is: isCall, id: "callID", name: "tool", args: "state.input", done: "state.status=completed|error",
			output: "state.output state.error", failed: "state.status=error",
			ignore: opencodePart + " metadata state.status state.title state.metadata state.time state.raw",
		},
		{when: "type=file", is: isMedia, url: "url", mime: "mime", file: "filename", ignore: opencodePart + " source"},
		{when: "type=subtask", text: "prompt", ignore: opencodePart + " description agent model command"},
		{when: "type=step-start", is: isStep, ignore: opencodePart + " snapshot"},
		{when: "type=step-finish|snapshot|patch|retry|compaction|agent", is: isNothing},
	},
}

const opencodePart = "id sessionID messageID time"
