package formats

import "github.com/sessionstore/compactor/strategies/chat"

// laravel describes rows of Laravel AI's table agent_conversation_messages, of which one of the
// assistant is a whole turn; it is no Format. Facts: laravel/ai 014d633 (src/Storage/DatabaseConversationStore.php).
var laravel = table{
	roles: map[string]chat.Role{"user": chat.RoleUser, "assistant": chat.RoleAssistant},
	bare:  "steps",
	kinds: []kind{
		laravelKind("role=assistant steps.-1.content", []source{{at: "steps"}}, "content"),
		laravelKind("role=assistant steps.0", []source{{at: "steps"}, {at: "content"}}, ""), // the last step's text is the row's
		laravelKind("role", []source{
			{at: "tool_calls", parts: []rule{{when: "name", is: isCall, id: "id", name: "name", args: "arguments", ignore: "result_id reasoning_id reasoning_summary"}}},
			{at: "tool_results", parts: []rule{{when: "id", is: isResult, id: "id", name: "name", output: "result", ignore: "arguments result_id"}}},
			{at: "content steps"},
		}, ""),
	},
	parts: []rule{{
		when: "!name", is: isStep, from: []source{
			{at: "reasoning", text: isReasoning},
			{at: "content"},
			{at: "tool_calls", parts: []rule{{
				when: "name", is: isCall, id: "id", name: "name", args: "arguments", done: "result?", output: "result", failed: "failed=true",
				ignore: "failed denied result_id reasoning_id reasoning_summary",
			}}},
		},
		ignore: "replay_blocks",
	}},
}

func laravelKind(when string, from []source, ignore string) kind {
	return kind{
		when: when, role: "role", id: "id", at: "created_at", session: "conversation_id", from: from,
		ignore: ignore + " conversation_id user_id participant_type participant_id agent usage meta updated_at approval_state",
	}
}
