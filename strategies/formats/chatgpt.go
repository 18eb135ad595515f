package formats

import "github.com/sessionstore/compactor/strategies/chat"

// chatGPT describes the conversations.json of an export of ChatGPT: a list of conversations, each a tree of
// messages of which current_node ends the branch that is shown. A call is a message to another recipient
// than all; it has no id. OpenAI publishes no description; these are exports of 2023 to 2026.
var chatGPT = table{
	list:  "mapping",
	many:  true,
	leaf:  "current_node",
	roles: map[string]chat.Role{"system": chat.RoleSystem, "user": chat.RoleUser, "assistant": chat.RoleAssistant, "tool": chat.RoleTool},
	doc: kind{
		session: "conversation_id id", title: "title", model: "default_model_slug",
		ignore: "create_time update_time moderation_results plugin_ids conversation_template_id gizmo_id gizmo_type is_archived is_starred safe_urls blocked_urls " +
			"conversation_origin voice async_status disabled_tool_ids is_do_not_remember memory_scope sugar_item_id context_scopes owner",
	},
	kinds: []kind{
		{when: "id !message", other: "=root", id: "id", parent: "parent"},
		chatGPTMessage("message.author.role=assistant message.recipient !message.recipient=all", []source{{at: "message", parts: []rule{
			{when: "recipient", is: isCall, name: "recipient", args: "content.text content.parts.0", ignore: "author content.content_type content.language content.response_format_name " + chatGPTIgnored},
		}}}, "=call"),
		chatGPTMessage("message.author.role=tool", []source{{at: "message.content"}}, "=result"),
		chatGPTMessage("message.author.role", []source{{at: "message.content"}}, ""),
	},
	parts: []rule{
		{when: "content_type=text|multimodal_text", is: isList, text: "parts", ignore: "content_type"},
		{when: "content_type=code|execution_output|system_error", text: "text", ignore: "content_type language response_format_name name"},
		{when: "content_type=tether_quote", text: "text", ignore: "content_type url domain title tether_id"},
		{when: "content_type=tether_browsing_display", text: "result", ignore: "content_type summary assets tether_id command"},
		{when: "content_type=audio_transcription", text: "text", ignore: "content_type direction decoding_id"},
		{when: "content_type=thoughts", is: isList, text: "thoughts", ignore: "content_type source_analysis_msg_id"},
		{when: "content_type=reasoning_recap", is: isNothing},
		{when: "content_type=user_editable_context", is: isGroup, from: []source{{at: "user_profile"}, {at: "user_instructions"}}, ignore: "content_type"},
		{when: "content_type=model_editable_context", text: "model_set_context", ignore: "content_type"},
		{when: "content#s !content_type", is: isGroup, from: []source{{at: "summary", text: isReasoning}, {at: "content", text: isReasoning}}, ignore: "chunks finished"}, // of thoughts
	},
	notes: "root",
}

const chatGPTIgnored = "update_time status end_turn weight metadata channel id create_time"

func chatGPTMessage(when string, from []source, join string) kind {
	name := ""
	if join == "=result" { // a call can have several
		name = "message.author.name"
	}
	return kind{
		when: "id " + when, role: "message.author.role", id: "id", parent: "parent", at: "message.create_time", name: name, model: "message.metadata.model_slug", join: join,
		from: from, ignore: "children message.author.name message.author.metadata message.recipient message.id message.update_time message.status message.end_turn " +
			"message.weight message.metadata message.channel",
	}
}
