package formats

// kimi describes the files of Moonshot's agents: the wire.jsonl of Kimi Code (MoonshotAI/kimi-code
// 05db53e, packages/agent-core/src/agent/records/types.ts and loop/events.ts) and the context.jsonl of the
// Kimi CLI (MoonshotAI/kimi-cli 07a7f17, src/kimi_cli/soul/context.py), which has messages of
// chat-completions and records whose role begins with "_".
var kimi = table{
	kinds: []kind{
		{when: "type=config.update|profile.bind systemPrompt", role: "=system", id: "=system", at: "time", replaces: true, from: []source{{at: "systemPrompt"}}, ignore: "type profileName subagentNames modelAlias thinkingEffort"},
		{when: "type=config.update|profile.bind", other: "type", model: "modelAlias"},
		{
			when: "type=context.append_message message.role", role: "message.role", at: "time", call: "message.toolCallId", failed: "message.isError=true",
			meta: "message.origin.kind !message.origin.kind=user",
			from: []source{{at: "message.content"}, {at: "message.toolCalls"}}, ignore: "type message.origin message.id message.isError",
		},
		{
			when: "type=context.append_loop_event event.type=content.part", role: "=assistant", at: "time", join: "event.stepUuid",
			from: []source{{at: "event.part"}}, ignore: "type event.type event.uuid event.turnId event.step",
		},
		{
			when: "type=context.append_loop_event event.type=tool.call", role: "=assistant", at: "time", join: "event.stepUuid",
			from: []source{{at: "event", parts: []rule{{
				when: "toolCallId name", is: isCall, id: "toolCallId", name: "name", args: "args",
				ignore: "uuid stepUuid turnId step description display extras traceId",
			}}}}, ignore: "type",
		},
		{
			when: "type=context.append_loop_event event.type=tool.result", role: "=tool", at: "time", call: "event.toolCallId", failed: "event.result.isError=true",
			from: []source{{at: "event.result.output", text: isResult}}, ignore: "type event.type event.parentUuid event.traceId event.result.isError event.result.truncated event.result.message",
		},
		{when: "type=context.append_loop_event event.type", other: "type event.type"},
		{when: "type=context.apply_compaction summary", role: "=user", at: "time", summary: "type", from: []source{{at: "summary"}}, ignore: "type compactedCount tokensBefore tokensAfter keptUserMessageCount contextSummary"},
		{when: "type=context.undo", other: "type", undo: "count"},
		{when: "type=metadata", other: "type"},
		{when: "type time", other: "type"},

		{when: "role=_system_prompt", role: "=system", from: []source{{at: "content"}}, ignore: "role"},
		{when: "role=_checkpoint|_usage", other: "role"},
		{when: "role", role: "role", name: "name", call: "tool_call_id", from: []source{{at: "content"}, {at: "tool_calls"}}, ignore: "partial"},
	},
	parts: []rule{
		{when: "type=text", text: "text"},
		{when: "type=think", is: isReasoning, text: "think"},
		{when: "type=image_url", is: isMedia, url: "imageUrl.url image_url.url", ignore: "imageUrl.id image_url.id"},
		{when: "function", is: isCall, id: "id", name: "function.name", args: "function.arguments", ignore: "extras"},
		{when: "type=function name", is: isCall, id: "id", name: "name", args: "arguments", ignore: "extras"},
	},
	notes: "metadata config.update profile.bind turn.prompt turn.steer turn.cancel context.append_loop_event context.undo context.clear llm.request llm.tools_snapshot " +
		"usage.record mcp.tools_discovered tools.set_active_tools tools.update_store tools.register_user_tool permission.set_mode " +
		"permission.record_approval_result full_compaction.begin full_compaction.complete full_compaction.cancel micro_compaction.apply " +
		"plan_mode.enter plan_mode.exit plan_mode.cancel forked _checkpoint _usage",
}
