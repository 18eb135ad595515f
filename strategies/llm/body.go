package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

const (
	// answerLimit and failureLimit bound the body of a response, in bytes. The longest
	// answers have about 128,000 tokens, with their reasoning.
	answerLimit  = 8 << 20
	failureLimit = 64 << 10
)

// exchange is the http.RoundTripper of one request of the library. It adds the fields that
// the library's request lacks, bounds the body of the response, keeps the fields that the library
// does not return, and makes the body regular. Servers differ from OpenAI in the types of fields,
// and the library's decoder returns nothing of a body with one field of a type that it does
// not expect: an answer would be lost over usage that is a text, a content in parts, or an id
// that is a number. Of errors it reads objects with a message alone: not those that are a text, a
// list, or fields at the top; and it classifies an error with status 200 as an answer without
// choices, and a redirect as an answer.
type exchange struct {
	base  http.RoundTripper
	extra map[string]any // added to the body of the request
	response
}

// RoundTrip implements http.RoundTripper.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if len(x.extra) > 0 {
		extra, err := json.Marshal(x.extra)
		if err != nil {
			return nil, err
		}
		body = append(append(extra[:len(extra)-1], ','), body[1:]...)
	}
	var connecting atomic.Bool // stays false if the transport does not call traces
	req = req.Clone(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { connecting.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { connecting.Store(false) },
	}))
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Header.Set("User-Agent", "compactor")
	x.sent = true
	resp, err := x.base.RoundTrip(req)
	if err != nil {
		x.unconnected = connecting.Load()
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	x.status = resp.StatusCode
	x.retryAfter = retryAfter(resp.Header, time.Now())
	x.requestID = plainID(resp.Header)
	limit := int64(failureLimit)
	if isSuccess(resp.StatusCode) {
		limit = answerLimit
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	x.complete = err == nil && int64(len(body)) <= limit
	if err != nil && isSuccess(resp.StatusCode) {
		return nil, err
	}
	x.usage = readUsage(body)
	regular, status := readAnswer(body)
	if !isSuccess(resp.StatusCode) || status != http.StatusOK {
		regular = openai.ErrorResponse{Error: readError(body, isSuccess(resp.StatusCode))}
		status = max(resp.StatusCode, http.StatusBadRequest)
	}
	if body, err = json.Marshal(regular); err != nil {
		return nil, err
	}
	resp.StatusCode, resp.Body, resp.ContentLength = status, io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

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

// count is a number of tokens, or a text of one; any other value is 0.
type count int

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (c *count) UnmarshalJSON(raw []byte) error {
	var v float64
	if json.Unmarshal(bytes.Trim(raw, `"`), &v) != nil {
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

// readAnswer returns the first choice in the body of a response, and a status other than 200
// if it has none.
func readAnswer(body []byte) (answer any, status int) {
	var b struct {
		Model   text `json:"model"`
		Choices []struct {
			Message struct {
				Content text `json:"content"`
				Refusal text `json:"refusal"`
			} `json:"message"`
			FinishReason text `json:"finish_reason"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &b) != nil || len(b.Choices) == 0 {
		return nil, http.StatusBadGateway
	}
	first := b.Choices[0]
	return openai.ChatCompletionResponse{Model: string(b.Model), Choices: []openai.ChatCompletionChoice{{
		Message:      openai.ChatCompletionMessage{Content: string(first.Message.Content), Refusal: string(first.Message.Refusal)},
		FinishReason: finishReason(string(first.FinishReason)),
	}}}, http.StatusOK
}

// finishReason maps the finish reasons of several servers to those of an Answer.
func finishReason(s string) openai.FinishReason {
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

// readUsage reads the usage of a response. It is read here for failures have one, too, and
// the library has no field for it there.
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

// readError reads the formats that servers have for errors: an object, a text, or fields at
// the top, some of them in a list; or no JSON at all. With the status of a success the body may
// be a part of an answer: then only the field error is one.
func readError(body []byte, success bool) *openai.APIError {
	var top any
	if json.Unmarshal(body, &top) != nil {
		if body = bytes.TrimSpace(body); !bytes.HasPrefix(body, []byte("<")) { // a page says nothing that the status does not
			top = string(body)
		}
	}
	if list, ok := top.([]any); ok && len(list) > 0 {
		top = list[0]
	}
	e, text := field(top, "error"), ""
	if success {
		top = e
	}
	if _, ok := e.(map[string]any); !ok {
		e, text = top, message(e)
	}
	for _, name := range []string{"message", "detail", "errors"} {
		text = strings.TrimSpace(text + " " + message(field(e, name)))
	}
	if s, ok := top.(string); ok {
		text = s
	}
	param := name(field(e, "param"))
	return &openai.APIError{
		Code: name(field(e, "code")), Message: text[:min(len(text), failureLimit)], Param: &param,
		Type:       cmp.Or(name(field(e, "type")), name(field(e, "status"))), // Gemini's status is a type
		InnerError: &openai.InnerError{Code: name(field(field(e, "innererror"), "code"))},
	}
}

// field returns a field of a JSON object, whatever its case; nil if there is none.
func field(v any, name string) any {
	object, _ := v.(map[string]any)
	for key, value := range object {
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return nil
}

// name returns a JSON string that has the form of a name, or else nothing: others may hold
// content.
func name(v any) string {
	s, _ := v.(string)
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return s
}

// message returns the message in a JSON value: a string, or those in a list and in the fields
// of its objects that have messages.
func message(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var all []string
		for _, x := range v {
			all = append(all, message(x))
		}
		return strings.Join(all, ", ")
	case map[string]any:
		for _, name := range []string{"message", "msg", "detail"} {
			if s := message(field(v, name)); s != "" {
				return s
			}
		}
	}
	return ""
}
