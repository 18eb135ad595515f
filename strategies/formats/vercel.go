package formats

import "github.com/sessionstore/compactor/strategies/chat"

var vercelRoles = map[string]chat.Role{
	"system": chat.RoleSystem, "user": chat.RoleUser, "assistant": chat.RoleAssistant, "tool": chat.RoleTool,
}

// vercel describes messages of the Vercel AI SDK: UIMessages, whose parts hold calls with their results
// (versions 4 to 6; version 4 also has toolInvocations), and ModelMessages (before version 5
// CoreMessages). Facts: vercel/ai 6.0, packages/ai/src/ui/ui-messages.ts and convert-to-model-messages.ts.
var vercel = table{
	list:  "messages",
	doc:   kind{session: "session_id id chatId", model: "model modelId", title: "title"},
	roles: vercelRoles,
	bare:  "parts",
	kinds: []kind{
		{
			when: "role parts", role: "role", id: "id", at: "createdAt", session: "chatId",
			from:   []source{{at: "parts"}, {at: "experimental_attachments attachments"}},
			ignore: "content toolInvocations reasoning status", // parts have them
		},
		{
			when: "role", role: "role", id: "id", at: "createdAt", session: "chatId",
			from:   []source{{at: "reasoning", text: isReasoning}, {at: "toolInvocations", parts: []rule{vercelInvocation("")}}, {at: "content"}, {at: "experimental_attachments"}},
			ignore: "status",
		},
	},
	parts: []rule{
		{when: "type=text", text: "text", ignore: "state"},
		{when: "type=reasoning details", is: isList, text: "details", ignore: "reasoning state"},
		{
			when: "type=reasoning", is: isReasoning, text: "text reasoning", ignore: "state",
			signature: "providerMetadata.anthropic.signature providerOptions.anthropic.signature signature",
		},
		{when: "type=redacted", is: isRedacted, text: "data"},
		{when: "type=redacted-reasoning", is: isRedacted, text: "data"},
		vercelInvocation("toolInvocation."),
		{when: "type=tool-call", is: isCall, id: "toolCallId", name: "toolName", args: "input args", ignore: "providerExecuted"},
		{
			when: "type=tool-result", is: isResult, id: "toolCallId", name: "toolName", output: "output.value output.reason output result", ignore: "output.type args",
			failed: "output.type=error-text|error-json|execution-denied",
		},
		vercelTool("type^tool-"),
		vercelTool("type=dynamic-tool"),
		{when: "type=image", is: isMedia, url: "image", mime: "mediaType mimeType"},
		{when: "type=file", is: isMedia, url: "url", data: "data", mime: "mediaType mimeType", file: "filename"},
		{when: "contentType url", is: isMedia, url: "url", mime: "contentType", file: "name"}, // an attachment
		{when: "type=step-start", is: isStep},
	},
}

// vercelTool describes a call and its result in a UIMessage.
func vercelTool(when string) rule {
	return rule{
		when: when + " toolCallId", is: isCall, id: "toolCallId", name: "toolName type^tool-", args: "input rawInput",
		done: "state=output-available|output-error|output-denied", output: "output errorText approval.reason", failed: "state=output-error|output-denied",
		ignore: "state preliminary providerExecuted title approval",
	}
}

// vercelInvocation describes a call and its result as version 4 has them, and Mastra.
func vercelInvocation(at string) rule {
	return rule{
		when: at + "toolCallId " + at + "toolName !type=tool-call|tool-result|dynamic-tool", is: isCall,
		id: at + "toolCallId", name: at + "toolName", args: at + "args",
		done: at + "state=result|output-error", output: at + "result " + at + "errorText", failed: at + "state=output-error",
		ignore: at + "state " + at + "step " + "toolInvocation",
	}
}

// mastra describes messages as Mastra stores them (MastraDBMessage, format 2: parts of the Vercel AI SDK
// 4 under content). Facts: @mastra/core 1.71, rows that @mastra/pg 1.27 wrote.
var mastra = table{
	list:  "messages",
	doc:   kind{session: "threadId id", title: "title"},
	roles: vercelRoles,
	bare:  "content",
	wrap:  "content",
	kinds: []kind{
		{
			when: "role content.parts", role: "role", id: "id", at: "createdAt createdAtZ", session: "threadId thread_id",
			from:   []source{{at: "content.parts"}, {at: "content.experimental_attachments"}},
			ignore: "content.format content.content content.toolInvocations content.reasoning resourceId type",
		},
		{
			when: "role content#s", role: "role", id: "id", at: "createdAt createdAtZ", session: "threadId thread_id",
			from: []source{{at: "content"}}, ignore: "resourceId type",
		},
	},
	parts: vercel.parts,
}
