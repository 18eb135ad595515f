package llm

import (
	"encoding/json"
	"strings"
)

// Servers differ from OpenAI in the types of fields. An unexpected type must not lose an
// answer that was paid for, so each field is decoded on its own: text and count never fail.

// text is a JSON string or the texts of a list of parts; any other value is empty.
type text string

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (t *text) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*t = text(s)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts)
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	*t = text(b.String())
	return nil
}

// count is a number of tokens; any other value is 0.
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

// Finish reasons of an Answer. All others become FinishOther.
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
				Content text `json:"content"`
				Refusal text `json:"refusal"`
			} `json:"message"`
			FinishReason text `json:"finish_reason"`
		} `json:"choices"`
	}
	c.usage = readUsage(body)
	c.class = MalformedAnswer
	if json.Unmarshal(body, &b) != nil || len(b.Choices) == 0 {
		// An error in place of an answer has a known code or type, or it is malformed.
		if named := readServerError(body).class(); named != "" {
			c.class = named
		}
		return
	}
	choice := b.Choices[0]
	c.finish = finishReason(string(choice.FinishReason))
	c.refusal = string(choice.Message.Refusal)
	c.text = withoutReasoning(string(choice.Message.Content))
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

// withoutReasoning removes the reasoning at the beginning of a text, for servers without a
// field for it. Reasoning that does not end is followed by no answer.
func withoutReasoning(s string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(s, " \t\r\n"), "<think>")
	if !ok {
		return s
	}
	_, answer, _ := strings.Cut(rest, "</think>")
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

// readUsage reads the usage of a response, which may be a failure.
func readUsage(body []byte) (u Usage) {
	var b struct {
		Usage json.RawMessage `json:"usage"`
	}
	_ = json.Unmarshal(body, &b) // without usage, the next one fails
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
	var in, out struct {
		Cached    count `json:"cached_tokens"`
		Reasoning count `json:"reasoning_tokens"`
	}
	_ = json.Unmarshal(raw.In, &in) // null, absent or of another type: no details
	_ = json.Unmarshal(raw.Out, &out)
	u.Input = int(max(raw.Prompt, raw.Input))
	u.Output = int(max(raw.Completion, raw.Output))
	u.Cached = min(int(max(in.Cached, raw.CacheHit)), u.Input)
	u.Reasoning = int(out.Reasoning)
	if u.Reasoning > 0 && int(raw.Total) == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning // some servers report reasoning beside the output; all bill it
	}
	u.Reasoning = min(u.Reasoning, u.Output)
	return u
}

// serverError is the error in a response.
type serverError struct {
	names   []string // codes and types, the most specific first
	message string   // its beginning, in lower case
}

// readServerError reads the formats that servers have for errors: an object, a text, or
// fields at the top, some of them in a list.
func readServerError(body []byte) serverError {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	type shape struct {
		Error   json.RawMessage `json:"error"`
		Code    text            `json:"code"`
		Type    text            `json:"type"`
		Status  text            `json:"status"`
		Message text            `json:"message"`
		Detail  text            `json:"detail"`
		Inner   json.RawMessage `json:"innererror"`
	}
	var top, s, inner shape
	if json.Unmarshal(body, &top) != nil {
		return serverError{}
	}
	var message text
	if json.Unmarshal(top.Error, &s) != nil || len(top.Error) == 0 || string(top.Error) == "null" {
		s = top
		_ = json.Unmarshal(top.Error, &message)
	}
	_ = json.Unmarshal(s.Inner, &inner) // Azure's more specific code
	var f serverError
	for _, name := range []text{inner.Code, s.Code, s.Type, s.Status} {
		if name != "" && len(name) <= 64 {
			f.names = append(f.names, string(name))
		}
	}
	message += " " + s.Message + " " + s.Detail
	const most = 1000 // the rest may be the request, repeated
	f.message = strings.ToLower(string(message[:min(len(message), most)]))
	return f
}
