package formats

import "github.com/sessionstore/compactor/strategies/chat"

// cline describes the api_conversation_history.json of Cline and of Roo Code: messages of Anthropic's API, with
// times and marks of what left the prompt. Facts: cline/cline 3.x (src/shared/messages/content.ts),
// RooCodeInc/Roo-Code 3.x (src/core/task-persistence/apiMessages.ts).
var cline = table{
	roles: map[string]chat.Role{"user": chat.RoleUser, "assistant": chat.RoleAssistant},
	kinds: []kind{
		{when: "type=reasoning ts", role: "=assistant", at: "ts", leads: true, from: []source{{at: "text", text: isReasoning}, {at: "summary"}}, ignore: "type role content id"},
		{
			when: "role", role: "role", id: "id", at: "ts", model: "modelInfo.modelId", summary: "isSummary=true", meta: "isTruncationMarker=true",
			from:   []source{{at: "reasoning_content", text: isReasoning}, {at: "content"}},
			ignore: "modelInfo metrics isSummary isTruncationMarker truncationId truncationParent condenseId condenseParent",
		},
	},
	parts: []rule{
		{when: "type=text", text: "text", ignore: "cache_control call_id"},
		{when: "type=image source.type=base64", is: isMedia, data: "source.data", mime: "source.media_type", ignore: "source.type cache_control"},
		{when: "type=image", is: isMedia, url: "source.url", ignore: "source.type cache_control"},
		{when: "type=document source.type=base64", is: isMedia, data: "source.data", mime: "source.media_type", file: "title", ignore: "source.type cache_control"},
		{when: "type=tool_use", is: isCall, id: "id", name: "name", args: "input", ignore: "cache_control call_id"},
		{when: "type=tool_result", is: isResult, id: "tool_use_id", output: "content", failed: "is_error=true", ignore: "is_error cache_control call_id"},
		{when: "type=thinking", is: isReasoning, text: "thinking", signature: "signature", ignore: "call_id"},
		{when: "type=reasoning", is: isReasoning, text: "text", ignore: "summary"},
		{when: "type=redacted_thinking", is: isRedacted, text: "data", ignore: "call_id"},
		{when: "type=summary_text", is: isReasoning, text: "text"},
	},
}
