package formats

import "github.com/sessionstore/compactor/strategies/chat"

// goose describes sessions of Goose: the export of one as JSON, and the files of its versions before 1.10, lines
// after a header. Facts: block/goose 0513296 (crates/goose/src/conversation/message.rs).
var goose = table{
	list:  "conversation",
	roles: map[string]chat.Role{"user": chat.RoleUser, "assistant": chat.RoleAssistant},
	doc: kind{
		session: "id", title: "name description", model: "model_config.model_name",
		ignore: "working_dir created_at updated_at extension_data message_count session_type user_set_name schedule_id provider_name model_config goose_mode " +
			"total_tokens input_tokens output_tokens accumulated_total_tokens accumulated_input_tokens accumulated_output_tokens",
	},
	kinds: []kind{
		{when: "working_dir !role", other: "=header", session: "id", title: "description name"},
		{
			when: "role content", role: "role", id: "id", at: "created", meta: "metadata.userVisible=false",
			from: []source{{at: "content"}}, ignore: "metadata",
		},
	},
	parts: []rule{
		{when: "type=text", text: "text", ignore: "annotations"},
		{when: "type=image", is: isMedia, data: "data", mime: "mimeType", ignore: "annotations"},
		{when: "type=resource resource.text", text: "resource.text", ignore: "resource.uri resource.mimeType annotations"},
		gooseCall("type=toolRequest"), gooseCall("type=frontendToolRequest"),
		{when: "type=toolRequest toolCall.error", text: "toolCall.error", ignore: "id toolCall.status"},
		gooseResult("type=toolResponse toolResult.value.isError=true", "type"),
		gooseResult("type=toolResponse", "toolResult.status=error"),
		{when: "type=thinking", is: isReasoning, text: "thinking", signature: "signature"},
		{when: "type=redactedThinking", is: isRedacted, text: "data"},
		{when: "type=reasoning", is: isReasoning, text: "text"},
	},
	unwrap: "content",
	beside: "isError structuredContent _meta",
	notes:  "header",
}

func gooseCall(when string) rule {
	return rule{
		when: when + " toolCall.value.name", is: isCall, id: "id", name: "toolCall.value.name", args: "toolCall.value.arguments",
		ignore: "toolCall.status metadata _meta",
	}
}

func gooseResult(when, failed string) rule {
	return rule{
		when: when, is: isResult, id: "id", output: "toolResult.value toolResult.error", failed: failed, ignore: "toolResult.status metadata",
	}
}
