package formats

// openHands describes events of OpenHands: those of its agent SDK, which have a kind
// (OpenHands/software-agent-sdk 17555e4, openhands-sdk/openhands/sdk/event), and those of version 0, which are
// an action or an observation (All-Hands-AI/OpenHands 04e2840, openhands/events/serialization/event.py).
var openHands = table{
	list: "events history trajectory",
	doc:  kind{session: "id instance_id conversation_id", title: "title", model: "model"},
	kinds: []kind{
		{
			when: "kind=SystemPromptEvent system_prompt", role: "=system", id: "id", at: "timestamp",
			from: []source{{at: "system_prompt"}, {at: "dynamic_context"}}, ignore: "kind source tools",
		},
		{
			when: "kind=MessageEvent llm_message.role", role: "llm_message.role", id: "id", at: "timestamp",
			from: []source{
				{at: "llm_message.reasoning_content", text: isReasoning},
				{at: "llm_message.thinking_blocks"},
				{at: "llm_message.content"},
				{at: "extended_content"},
				{at: "llm_message.tool_calls"},
			},
			ignore: openHandsEvent + " sender activated_skills llm_message.cache_enabled llm_message.vision_enabled llm_message.function_calling_enabled " +
				"llm_message.force_string_serializer llm_message.send_reasoning_content",
		},
		{
			when: "kind=ActionEvent tool_call", role: "=assistant", id: "id", at: "timestamp", join: "llm_response_id",
			from: []source{
				{at: "reasoning_content", text: isReasoning}, {at: "thinking_blocks"}, {at: "thought"}, {at: "tool_call"},
			},
			ignore: openHandsEvent + " action tool_name tool_call_id security_risk summary",
		},
		openHandsResult("kind=ObservationEvent", "observation.is_error=true", "observation.content observation.output observation", "extended_content"),
		openHandsResult("kind=AgentErrorEvent", "error", "error", "extended_content"),
		openHandsResult("kind=UserRejectObservation", "rejection_reason", "rejection_reason", "extended_content"),
		{when: "kind=Condensation summary", role: "=user", id: "id", at: "timestamp", summary: "kind", from: []source{{at: "summary"}}, ignore: openHandsEvent + " forgotten_event_ids summary_offset"},
		{when: "kind=CondensationSummaryEvent summary", role: "=user", id: "id", at: "timestamp", summary: "kind", from: []source{{at: "summary"}}, ignore: openHandsEvent},
		{when: "kind source", other: "kind"},

		openHandsSaid("action=message source=user", "=user"),
		openHandsSaid("action=message", "=assistant"),
		openHandsSaid("action=system", "=system"),
		openHandsSaid("action=finish", "=assistant"),
		{when: "action=change_agent_state|null|recall|condensation|condensation_request|start|pause|resume|stop", other: "action"},
		{when: "observation=agent_state_changed|null|recall|condense", other: "observation"},
		{when: "action source=user", other: "action source"},
		{
			when: "action args", role: "=assistant", id: "id", at: "timestamp", join: "tool_call_metadata.model_response.id",
			from: []source{
				{at: "args.thought"},
				{at: "=", parts: []rule{{
					when: "action", is: isCall, id: "tool_call_metadata.tool_call_id id", name: "tool_call_metadata.function_name action", args: "args",
				}}},
			},
			ignore: "action source message tool_call_metadata llm_metrics timeout",
		},
		{
			when: "observation content?", role: "=tool", id: "id", at: "timestamp", call: "tool_call_metadata.tool_call_id cause", failed: "observation=error|user_rejected",
			from: []source{{at: "content", text: isResult}}, ignore: "source message observation cause tool_call_metadata llm_metrics extras success",
		},
	},
	parts: []rule{
		{when: "type=text", text: "text", ignore: "cache_prompt enable_truncation"},
		{when: "type=image image_urls", is: isGroup, from: []source{{at: "image_urls", text: isMedia}}, ignore: "cache_prompt enable_truncation"},
		{when: "type=thinking", is: isReasoning, text: "thinking", signature: "signature"},
		{when: "type=redacted_thinking", is: isRedacted, text: "data"},
		{when: "name arguments?", is: isCall, id: "id", name: "name", args: "arguments", ignore: "origin responses_item_id"},
		{when: "function.name", is: isCall, id: "id", name: "function.name", args: "function.arguments"},
	},
	notes: "ConversationStateUpdateEvent TokenEvent PauseEvent CondensationRequest LLMCompletionLogEvent change_agent_state agent_state_changed null",
}

const openHandsEvent = "kind source llm_response_id"

func openHandsResult(when, failed, content, more string) kind {
	return kind{
		when: when + " tool_call_id", role: "=tool", id: "id", at: "timestamp", call: "tool_call_id", name: "tool_name", failed: failed,
		from: []source{{at: content, text: isResult}, {at: more}}, ignore: openHandsEvent + " action_id rejection_source classification observation.is_error observation.kind",
	}
}

func openHandsSaid(when, role string) kind {
	return kind{
		when: when, role: role, id: "id", at: "timestamp",
		from:   []source{{at: "args.content args.final_thought args.thought message"}, {at: "args.image_urls", text: isMedia}},
		ignore: "source action message args.wait_for_response args.security_risk args.task_completed args.outputs args.thought args.agent_class args.openhands_version tool_call_metadata llm_metrics timeout",
	}
}
