package formats

import "github.com/sessionstore/compactor/strategies/chat"

// langChain describes messages of LangChain: {"type", "data"} of Python (messages_to_dict), the flat
// {"type", "content"} of JavaScript, and the dump of an object (dumps, toJSON), which is
// {"lc", "type": "constructor", "id", "kwargs"}. Facts: langchain-core 1.x (messages/base.py, load/dump.py),
// @langchain/core 1.x (stored_message.ts).
var langChain = table{
	list:  "messages",
	doc:   kind{session: "session_id id thread_id", model: "model", title: "title"},
	roles: langChainRoles,
	kinds: []kind{
		langChainKind("lc type=constructor kwargs", "kwargs.", "kwargs.role id.-1", "lc type id kwargs.type"),
		langChainKind("type data.content", "data.", "data.role type", "data.type"),
		langChainKind("type !role content", "", "type", ""),
		langChainKind("type=chat|generic role content", "", "role", "type"),
	},
	parts: []rule{
		{when: "type=text", text: "text", ignore: "annotations index id extras cache_control"},
		{when: "type=output_text", text: "text", ignore: "annotations index id"},
		{when: "type=image_url", is: isMedia, url: "image_url.url image_url", ignore: "image_url.detail"},
		{when: "type=image source.type=base64", is: isMedia, data: "source.data", mime: "source.media_type", ignore: "source.type"},
		{when: "type=image source_type", is: isMedia, url: "url", data: "data", mime: "mime_type", ignore: "source_type"},
		{when: "type=image", is: isMedia, url: "url", data: "base64 data", mime: "mime_type mimeType", ignore: "id"},
		{when: "type=file", is: isMedia, url: "url", data: "base64 data", mime: "mime_type mimeType", file: "metadata.filename filename", ignore: "source_type id"},
		{when: "type=thinking", is: isReasoning, text: "thinking", signature: "signature", ignore: "index"},
		{when: "type=redacted_thinking", is: isRedacted, text: "data", ignore: "index"},
		{when: "type=reasoning reasoning", is: isReasoning, text: "reasoning", ignore: "index id"},
		{when: "type=reasoning summary", is: isList, text: "summary", ignore: "index id status"},
		{when: "type=summary_text", is: isReasoning, text: "text", ignore: "index"},
		{when: "type=tool_use|tool_call|function_call|input_json_delta|tool_call_chunk", is: isNothing}, // in tool_calls, too
	},
}

var langChainRoles = map[string]chat.Role{
	"human": chat.RoleUser, "user": chat.RoleUser, "HumanMessage": chat.RoleUser, "HumanMessageChunk": chat.RoleUser,
	"ai": chat.RoleAssistant, "assistant": chat.RoleAssistant, "AIMessage": chat.RoleAssistant, "AIMessageChunk": chat.RoleAssistant,
	"system": chat.RoleSystem, "SystemMessage": chat.RoleSystem, "SystemMessageChunk": chat.RoleSystem, "developer": chat.RoleDeveloper,
	"tool": chat.RoleTool, "ToolMessage": chat.RoleTool, "ToolMessageChunk": chat.RoleTool,
	"function": chat.RoleTool, "FunctionMessage": chat.RoleTool, "FunctionMessageChunk": chat.RoleTool,
}

// langChainKind describes messages whose fields are at a path.
func langChainKind(when, at, role, ignore string) kind {
	call := []rule{
		{when: "function", is: isCall, id: "id", name: "function.name", args: "function.arguments", ignore: "index"},
		{when: "name", is: isCall, id: "id", name: "name", args: "args", ignore: "type"},
	}
	old := []rule{{when: "name", is: isCall, name: "name", args: "arguments"}}
	extra := at + "additional_kwargs."
	return kind{
		when: when, role: role, id: at + "id", name: at + "name", call: at + "tool_call_id", failed: at + "status=error",
		at: at + "created_at",
		from: []source{
			{at: extra + "reasoning_content", text: isReasoning},
			{at: at + "content"},
			{at: at + "tool_calls " + extra + "tool_calls", parts: call},
			{at: at + "invalid_tool_calls", parts: call},
			{at: extra + "function_call", parts: old},
		},
		ignore: ignore + " type " + at + "status " + at + "example " + at + "response_metadata " + at + "usage_metadata " +
			at + "tool_call_chunks " + extra + "tool_calls " + extra + "refusal",
	}
}
