package llm

import (
	"encoding/json"
	"strings"
)

// The bodies of servers are read field by field: a field that looks different from
// what OpenAI sends is no reason to lose an answer that was paid for.

// Finish reasons of an Answer. Servers have others, too; they become FinishOther.
const (
	FinishStop   = "stop"
	FinishLength = "length" // cut off
	FinishTools  = "tool_calls"
	FinishOther  = "other"
	finishFilter = "content_filter" // becomes a failure
	finishError  = "error"          // becomes a failure
)

// readAnswer reads the body of a successful response.
func (c *classification) readAnswer(body []byte) {
	var b struct {
		Choices []struct {
			Message struct {
				Content json.RawMessage `json:"content"`
				Refusal json.RawMessage `json:"refusal"`
			} `json:"message"`
			FinishReason json.RawMessage `json:"finish_reason"`
		} `json:"choices"`
	}
	c.usage = readUsage(body)
	c.class = MalformedAnswer
	if json.Unmarshal(body, &b) != nil || len(b.Choices) == 0 {
		// An error in place of an answer counts as what it says it is only where it
		// says so by a name that leaves no doubt.
		if named := readServerError(body).class(); named != "" {
			c.class = named
		}
		return
	}
	choice := b.Choices[0]
	c.finish = finishReason(text(choice.FinishReason))
	c.refusal = text(choice.Message.Refusal)
	c.text = withoutReasoning(text(choice.Message.Content))
	blank := strings.TrimSpace(c.text) == ""
	switch {
	case c.finish == finishFilter:
		c.class = ContentFilter
	case c.finish == finishError, blank && strings.TrimSpace(c.refusal) == "":
		c.exhausted = c.finish == FinishLength
	default:
		c.class = ""
	}
	if c.class != "" {
		c.text, c.refusal, c.finish = "", "", ""
	}
}

// text returns a JSON string, or the texts of a list of parts; anything else has none.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// withoutThoughts removes the reasoning at the beginning of a text, for servers that
// put it into no field of its own. Reasoning without an end has no answer behind it.
func withoutReasoning(s string) string {
	const begin, done = "<think>", "</think>"
	rest, ok := strings.CutPrefix(strings.TrimLeft(s, " \t\r\n"), begin)
	if !ok {
		return s
	}
	_, answer, _ := strings.Cut(rest, done)
	return strings.TrimLeft(answer, " \t\r\n")
}

// finishReason maps the finish reasons of several servers to those of an Answer.
func finishReason(s string) string {
	switch strings.ToLower(s) {
	case "":
		return ""
	case "stop", "end_turn", "eos", "eos_token", "stop_sequence":
		return FinishStop
	case "length", "max_tokens", "model_length":
		return FinishLength
	case "tool_calls", "function_call", "tool_use":
		return FinishTools
	case "content_filter", "safety":
		return finishFilter
	case "error":
		return finishError
	}
	return FinishOther
}

// count is a number of tokens; what is no such number is 0.
type count int

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (c *count) UnmarshalJSON(raw []byte) error {
	var v float64
	if json.Unmarshal(raw, &v) != nil {
		v = 0
	}
	*c = count(min(max(v, 0), maxTokens))
	return nil
}

// readUsage reads the usage of a body, also of one that is no answer.
func readUsage(body []byte) (u Usage) {
	var b struct {
		Usage json.RawMessage `json:"usage"`
	}
	if json.Unmarshal(body, &b) != nil {
		return Usage{}
	}
	var raw struct {
		Prompt     count           `json:"prompt_tokens"`
		Completion count           `json:"completion_tokens"`
		Total      count           `json:"total_tokens"`
		Input      count           `json:"input_tokens"`  // of some gateways
		Output     count           `json:"output_tokens"` // of some gateways
		CacheHit   count           `json:"prompt_cache_hit_tokens"`
		In         json.RawMessage `json:"prompt_tokens_details"`
		Out        json.RawMessage `json:"completion_tokens_details"`
	}
	if json.Unmarshal(b.Usage, &raw) != nil {
		return Usage{}
	}
	var in struct {
		Cached count `json:"cached_tokens"`
	}
	var out struct {
		Reasoning count `json:"reasoning_tokens"`
	}
	_ = json.Unmarshal(raw.In, &in) // null, absent or odd: no details
	_ = json.Unmarshal(raw.Out, &out)
	u.Input = int(max(raw.Prompt, raw.Input))
	u.Output = int(max(raw.Completion, raw.Output))
	u.Cached = min(int(max(in.Cached, raw.CacheHit)), u.Input)
	u.Reasoning = int(out.Reasoning)
	if u.Reasoning > 0 && int(raw.Total) == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning // some count reasoning beside the output, all bill it
	}
	u.Reasoning = min(u.Reasoning, u.Output)
	return u
}

// serverError is an error as a server describes it.
type serverError struct {
	names   []string // codes and types, the most exact first
	message string   // in lower case, its beginning
}

// readServerError reads the shapes that servers give their errors: an object, a text, or
// fields at the top, some of them in a list.
func readServerError(body []byte) serverError {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	type shape struct {
		Error   json.RawMessage `json:"error"`
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
		Status  json.RawMessage `json:"status"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Inner   json.RawMessage `json:"innererror"`
	}
	var top, s, inner shape
	if json.Unmarshal(body, &top) != nil {
		return serverError{}
	}
	f := serverError{}
	if json.Unmarshal(top.Error, &s) != nil || len(top.Error) == 0 || string(top.Error) == "null" {
		s = top
		f.message = text(top.Error)
	}
	_ = json.Unmarshal(s.Inner, &inner) // Azure's; absent or odd: no exacter code
	for _, raw := range []json.RawMessage{inner.Code, s.Code, s.Type, s.Status} {
		if name := text(raw); name != "" && len(name) <= 64 {
			f.names = append(f.names, name)
		}
	}
	for _, raw := range []json.RawMessage{s.Message, s.Detail} {
		f.message += " " + text(raw)
	}
	const most = 1000 // what follows may be the request, repeated
	f.message = strings.ToLower(f.message[:min(len(f.message), most)])
	return f
}
