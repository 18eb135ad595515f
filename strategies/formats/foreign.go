package formats

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
)

// shapes lists formats by the facts that show them: names of formats that are read, and what the formats of
// other programs and APIs are called in the error that refuses them. A fact that begins with @ is looked for
// in a message wherever messages stand: in a document, in a list, or on a line.
var shapes = []struct{ name, facts string }{
	{"qwen-code", ".uuid .sessionId .message.parts[]"},
	{"gemini-cli", ".sessionId .projectHash"},
	{"gemini-cli", ".type=gemini .content .id"},
	{"langchain", "@.type=human @.data.content"},
	{"langchain", "@.type=ai @.data.content"},
	{"langchain", "@.type=system @.data.content"},
	{"langchain", "@.type @.content @.additional_kwargs !@.role"},
	{"langchain", "@.type=human @.content !@.role"},
	{"langchain", "@.type=ai @.content !@.role"},
	{"langchain", "@.lc @.kwargs.content"},
	{"grok", ".type=assistant .content .model_id !.message !.role !.id !.uuid"},
	{"grok", ".type=assistant .content .tool_calls[].arguments !.message !.role !.id !.uuid"},
	{"grok", ".type=user .content .prompt_index !.message !.role !.id !.uuid"},
	{"grok", ".type=user .content .synthetic_reason !.message !.role !.id !.uuid"},
	{"grok", ".type=tool_result .tool_call_id !.message !.role !.uuid"},
	{"copilot-cli", ".type .data .parentId !.uuid !.customType"},
	{"copilot-cli", ".type=session.start .data"},
	{"kimi", ".role=_checkpoint"},
	{"kimi", ".role=_usage"},
	{"kimi", ".role=_system_prompt"},
	{"kimi", ".type=metadata .protocol_version .created_at"},
	{"kimi", ".type=config.update .time"},
	{"kimi", ".type=turn.prompt .input"},
	{"kimi", ".type=context.append_message .message.role"},
	{"kimi", ".type=context.append_loop_event .event.type"},
	{"opencode", ".info.id .messages[].parts[]"},
	{"opencode", "@.info.role @.parts[]"},
	{"goose", ".working_dir .message_count"},
	{"goose", ".working_dir .conversation[]"},
	{"goose", "@.content[].type=toolRequest"},
	{"goose", "@.content[].type=toolResponse"},
	{"openhands", "@.source @.action !@.role"},
	{"openhands", "@.source @.observation !@.role"},
	{"openhands", "@.source @.llm_message !@.role"},
	{"openhands", "@.kind=ActionEvent @.tool_call_id"},
	{"openhands", "@.kind=SystemPromptEvent @.system_prompt"},
	{"openhands", ".history[].source .history[].action"},
	{"openhands", ".events[].source .events[].kind"},
	{"chatgpt", ".mapping .current_node"},
	{"chatgpt", ".mapping .title .create_time"},
	{"chatgpt", "[].mapping [].title"},
	{"mastra", "@.role @.content.parts[].type"},
	{"bedrock", "@.content[].toolUse"},
	{"bedrock", "@.content[].toolResult"},
	{"bedrock", "@.role @.content[].text !@.content[].type"},
	{"gemini", ".contents[].parts[]"},
	{"gemini", ".history[].parts[].text"},
	{"gemini", "@.role @.parts[].functionCall"},
	{"gemini", "@.role @.parts[].functionResponse"},
	{"gemini", "@.role @.parts[].text !@.parts[].type"},
	{"messages of Crush", "@.role @.parts[].data"},
	{"vercel", "@.role @.parts[].type"},
	{"vercel", "@.toolInvocations[].toolCallId"},
	{"vercel", "@.content[].type=tool-call"},
	{"vercel", "@.content[].type=tool-result"},
	{"a chat of GitHub Copilot", ".requests[].message .requests[].response"},
	{"a session file of Factory Droid", ".type=session_start"},
	{"a session file of Factory Droid", ".type=message .message.content[].type=tool_use"},
	{"a session file of Factory Droid", ".type=message .message.content[].type=tool_result"},
	{"a transcript of Cursor", ".role .message.content !.content"},
	{"a wire file of the Kimi CLI", ".timestamp .message.type .message.payload"},
	{"a history of prompts of Claude Code", ".display .pastedContents"},
	{"a history of prompts of Codex", ".session_id .ts .text !.role"},
	{"a session of the first Codex", ".session.id .items[]"},
	{"a trajectory of SWE-agent", ".trajectory[] .history[]"},
	{"a session of Continue", ".history[].message.role"},
	{"messages of Letta", "@.message_type !@.role"},
	{"an agent file of Letta", ".agents[].messages[]"},
	{"messages of pydantic-ai", "@.parts[].part_kind"},
	{"an export of Claude.ai", "[].chat_messages[]"},
	{"an export of Claude.ai", ".chat_messages[]"},
	{"a thread of Amp", "@.content[].toolUseID"},
	{"the user interface's file of Cline or Roo Code", "@.ts @.say"},
	{"the user interface's file of Cline or Roo Code", "@.ts @.ask"},
	{"messages of LlamaIndex", "@.role @.blocks[].block_type !@.content"},
	{"messages of Agent Framework", "@.role @.contents[].type"},
	{"messages of AutoGen", "@.source @.content @.type !@.role"},
	{"a prompt of Google AI Studio", ".chunkedPrompt"},
	{"messages of Cohere", "@.role @.message#s !@.content"},
	{"a log like that of Claude Code, with the text elsewhere", ".type=user .message#{ !.message.content"},
	{"a log like that of Claude Code, with the text elsewhere", ".type=assistant .message#{ !.message.content"},
	{"a batch of requests to the OpenAI API", ".custom_id .body"},
	{"an answer of the OpenAI API", ".choices[].message"},
	{"a training set of instructions", ".instruction .output#s !.messages !.role"},
	{"a training set of prompts and answers", ".prompt#s .completion#s !.messages !.role"},
	{"pairs of inputs and outputs", ".input .output#s !.messages !.role"},
}

// hints say what to do about some of shapes that are not read.
var hints = map[string]string{
	"a transcript of Cursor":                         "its calls have no ids and mostly no results; Cursor keeps chats in SQLite (state.vscdb, store.db), without a published schema",
	"the user interface's file of Cline or Roo Code": "give the api_conversation_history.json beside it",
	"a wire file of the Kimi CLI":                    "give the context.jsonl beside it",
}

// shapeRule is a rule of shapes for one place of the messages.
type shapeRule struct {
	rank  int // in shapes
	facts string
	at    string // the place
}

// shapesBy returns the rules by one of the facts that they need.
var shapesBy = sync.OnceValue(func() map[string][]shapeRule {
	by := map[string][]shapeRule{}
	for rank, x := range shapes {
		places := []string{".messages[]", "[]", ""}
		if !strings.Contains(x.facts, "@") {
			places = places[2:]
		}
		for _, at := range places {
			rule := shapeRule{rank, strings.ReplaceAll(x.facts, "@", at), at}
			need := "" // the longest is the rarest
			for fact := range strings.FieldsSeq(rule.facts) {
				if fact[0] != '!' && len(fact) > len(need) {
					need = fact
				}
			}
			by[need] = append(by[need], rule)
		}
	}
	return by
})

// shape returns the name in shapes that the facts show, "" for none. Of a value that is cut off, it is only
// known what it has, unless a whole message was read.
func (f facts) shape(whole bool) string {
	found := len(shapes)
	for fact := range f {
		for _, rule := range shapesBy()[fact] {
			sure := whole || !strings.Contains(rule.facts, "!") || f[rule.at+wholeFact]
			if rule.rank < found && sure && f.all(rule.facts) {
				found = rule.rank
			}
		}
	}
	if found == len(shapes) {
		return ""
	}
	return shapes[found].name
}

// nearest returns the names of the formats, at most three, of which the facts show at least a half.
func (f facts) nearest() (names []string) {
	if f == nil {
		return nil
	}
	share := map[string]float64{}
	for _, rules := range shapesBy() {
		for _, rule := range rules {
			has, all, telling := 0, 0, 0
			for fact := range strings.FieldsSeq(rule.facts) {
				if fact[0] == '!' {
					continue
				}
				all++
				if f[fact] {
					has++
					telling += strings.Count(fact, "=")
				}
			}
			if name := shapes[rule.rank].name; 2*has >= all && has+telling > 1 {
				share[name] = max(share[name], float64(has)/float64(all))
			}
		}
	}
	names = slices.SortedFunc(maps.Keys(share), func(a, b string) int {
		return cmp.Or(cmp.Compare(share[b], share[a]), cmp.Compare(a, b))
	})
	names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(Names(), name) })
	return names[:min(3, len(names))]
}
