package formats

import (
	"strings"
	"sync"
)

// foreign lists formats of other programs and APIs by the facts that show them, for the error
// that refuses them. A fact that begins with @ is looked for in a message wherever
// messages stand: in a document, in a list, or on a line.
var foreign = []struct{ name, facts string }{
	{"a session file of Qwen Code", ".uuid .sessionId .message.parts[]"},
	{"a session file of the Gemini CLI", ".sessionId .projectHash"},
	{"a session file of the Gemini CLI", ".type=gemini .content"},
	{"a session file of Grok", ".type=assistant .content !.message !.role"},
	{"a session file of Grok", ".type=user .content !.message !.role"},
	{"a session file of Grok", ".type=system .content#s !.message !.role !.uuid !.sessionId"},
	{"a session file of Grok", ".type=tool_result .tool_call_id !.message !.role"},
	{"a session file of the Copilot CLI", ".type .data .parentId !.uuid !.customType"},
	{"a session file of the Copilot CLI", ".type=session.start .data"},
	{"a chat of GitHub Copilot", ".requests[].message .requests[].response"},
	{"a session file of Factory Droid", ".type=session_start"},
	{"a session file of Factory Droid", ".type=message .message.content[].type=tool_use"},
	{"a session file of Factory Droid", ".type=message .message.content[].type=tool_result"},
	{"a transcript of Cursor", ".role .message.content !.content"},
	{"a context file of the Kimi CLI", ".role=_checkpoint"},
	{"a context file of the Kimi CLI", ".role=_usage"},
	{"a context file of the Kimi CLI", ".role=_system_prompt"},
	{"a history of prompts of Claude Code", ".display .pastedContents"},
	{"a history of prompts of Codex", ".session_id .ts .text !.role"},
	{"a session of the first Codex", ".session.id .items[]"},
	{"an export of OpenCode", ".info.id .messages[].parts[]"},
	{"an export of OpenCode", "@.info.role @.parts[]"},
	{"a session of Goose", ".working_dir .message_count"},
	{"a session of Goose", ".working_dir .conversation[]"},
	{"a session of Goose", "@.content[].type=toolRequest"},
	{"a session of Goose", "@.content[].type=toolResponse"},
	{"events of OpenHands", "@.source @.action !@.role"},
	{"events of OpenHands", "@.source @.observation !@.role"},
	{"events of OpenHands", "@.source @.llm_message !@.role"},
	{"a run of OpenHands", ".instance_id .history[]"},
	{"a trajectory of SWE-agent", ".trajectory[] .history[]"},
	{"a session of Continue", ".history[].message.role"},
	{"messages of Letta", "@.message_type !@.role"},
	{"an agent file of Letta", ".agents[].messages[]"},
	{"messages of pydantic-ai", "@.parts[].part_kind"},
	{"messages of LangChain", "@.type=human @.data.content"},
	{"messages of LangChain", "@.type=ai @.data.content"},
	{"messages of LangChain", "@.type=human @.content !@.role"},
	{"messages of LangChain", "@.type=ai @.content !@.role"},
	{"messages of LangChain", "@.lc @.kwargs"},
	{"an export of ChatGPT", ".mapping .current_node"},
	{"an export of ChatGPT", "[].mapping"},
	{"an export of Claude.ai", "[].chat_messages[]"},
	{"an export of Claude.ai", ".chat_messages[]"},
	{"a thread of Amp", "@.content[].toolUseID"},
	{"the user interface's file of Cline or Roo Code", "@.ts @.say"},
	{"the user interface's file of Cline or Roo Code", "@.ts @.ask"},
	{"messages of Bedrock Converse", "@.content[].toolUse"},
	{"messages of Bedrock Converse", "@.content[].toolResult"},
	{"messages of Bedrock Converse", "@.role @.content[].text !@.content[].type"},
	{"a request to the Gemini API", ".contents[].parts[]"},
	{"messages of the Gemini API", "@.role @.parts[].functionCall"},
	{"messages of the Gemini API", "@.role @.parts[].functionResponse"},
	{"messages of the Gemini API", "@.role @.parts[].text !@.parts[].type"},
	{"messages of Crush", "@.role @.parts[].data !@.content"},
	{"messages of the Vercel AI SDK", "@.role @.parts[].type !@.content"},
	{"messages of the Vercel AI SDK", "@.toolInvocations[].toolCallId"},
	{"messages of the Vercel AI SDK", "@.content[].type=tool-call"},
	{"messages of the Vercel AI SDK", "@.content[].type=tool-result"},
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

// foreignRule is a rule of foreign for one place of the messages.
type foreignRule struct {
	rank  int // in foreign
	facts string
}

// foreignBy returns the rules by one of the facts that they need.
var foreignBy = sync.OnceValue(func() map[string][]foreignRule {
	by := map[string][]foreignRule{}
	for rank, x := range foreign {
		places := []string{".messages[]", "[]", ""}
		if !strings.Contains(x.facts, "@") {
			places = places[2:]
		}
		for _, at := range places {
			rule := foreignRule{rank, strings.ReplaceAll(x.facts, "@", at)}
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

// foreign returns the program or API whose format the facts show, "" for none.
func (f facts) foreign() string {
	found := len(foreign)
	for fact := range f {
		for _, rule := range foreignBy()[fact] {
			if rule.rank < found && f.all(rule.facts) {
				found = rule.rank
			}
		}
	}
	if found == len(foreign) {
		return ""
	}
	return foreign[found].name
}
