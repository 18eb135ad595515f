package formats

// copilotCLI describes the events of the GitHub Copilot CLI, ~/.copilot/session-state/*/events.jsonl. Facts:
// github/copilot-sdk 0.2 (nodejs/src/generated/session-events.ts), files of version 0.0.420.
var copilotCLI = table{
	kinds: []kind{
		{when: "agentId", other: "=subagent"},
		{when: "data.parentToolCallId", other: "=subagent"},
		{when: "type=session.start data.sessionId", other: "type", session: "data.sessionId", model: "data.selectedModel"},
		{when: "type=session.model_change", other: "type", model: "data.newModel"},
		{when: "type=session.title_changed", other: "type", title: "data.title"},
		{when: "type=session.snapshot_rewind", other: "type", rewind: "data.upToEventId"},
		{
			when: "type=session.compaction_complete data.summaryContent", role: "=user", id: "id", at: "timestamp", summary: "type",
			from: []source{{at: "data.summaryContent"}}, ignore: "type parentId data",
		},
		copilotMessage("system.message data.role", "data.role", "data.metadata data.name"),
		copilotMessage("system.message", "=system", "data.metadata data.name"),
		copilotMessage("user.message", "=user", "data.source data.agentMode data.isAutopilotContinuation data.nativeDocumentPathFallbackPaths data.supportedNativeDocumentMimeTypes"),
		copilotMessage("assistant.message", "=assistant", "data.messageId data.outputTokens data.phase data.requestId data.turnId data.serviceRequestId data.apiCallId"),
		{
			when: "type=tool.execution_complete data.toolCallId", role: "=tool", id: "id", at: "timestamp", call: "data.toolCallId", failed: "data.success=false",
			from: []source{{at: "data.result.content data.error.message data.error data.result", text: isResult}},
			ignore: "type parentId data.success data.model data.interactionId data.isUserRequested data.toolTelemetry data.turnId data.sandboxed " +
				"data.toolDescription data.error.code data.result.detailedContent",
		},
		{when: "type data", other: "type"},
	},
	parts: []rule{
		{when: "toolCallId name", is: isCall, id: "toolCallId", name: "name", args: "arguments", ignore: "intentionSummary toolTitle mcpServerName mcpToolName"},
		{when: "type=blob", is: isMedia, data: "data", mime: "mimeType", file: "displayName"},
	},
	notes: "session.start session.resume session.model_change session.title_changed session.mode_changed session.info session.shutdown " +
		"session.truncation session.context_changed session.usage_info session.compaction_start session.compaction_complete session.snapshot_rewind " +
		"session.task_complete session.plan_changed session.workspace_file_changed session.idle session.warning session.error session.tools_updated " +
		"assistant.turn_start assistant.turn_end assistant.usage assistant.reasoning tool.execution_start hook.start hook.end " +
		"permission.requested permission.completed subagent.started subagent.completed subagent.failed subagent.selected abort",
}

func copilotMessage(typ, role, ignore string) kind {
	return kind{
		when: "type=" + typ, role: role, id: "id", at: "timestamp", model: "data.model", meta: "data.source !data.source=user",
		from: []source{
			{at: "data.reasoningText", text: isReasoning}, {at: "data.content"}, {at: "data.attachments"}, {at: "data.toolRequests"},
		},
		ignore: "type parentId data.interactionId " + ignore,
	}
}
