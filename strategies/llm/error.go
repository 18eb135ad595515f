package llm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	openai "github.com/sashabaranov/go-openai"

	"github.com/sessionstore/compactor/strategies/redact"
)

// Error is the error of a call. It holds no part of the request, and of a response only Server.
type Error struct {
	// Class is the class of the failure. If models failed in different ways, it is the one
	// that is most useful to the caller.
	Class Class
	// Model is the model of that failure, empty if none was called.
	Model string
	// Status is its HTTP status, 0 without a response.
	Status int
	// Server is the error that the server returned, or the message of the transport without a
	// response; zero if there is none. The text of this error does not include it.
	Server ServerError
	// RetryAfter is the delay until the first of the failed models may be called again,
	// 0 if unknown. It is not shorter than the delay that its server requested.
	RetryAfter time.Duration
	// Attempts is the number of requests to all models.
	Attempts int
	// Usage and CostMicros are the totals of all attempts, as in Answer.
	Usage      Usage
	CostMicros int64
	// Stopped is the limit of the Budget that ended the call: "attempts", "tokens", "cost"
	// or "time"; empty if none did.
	Stopped string

	cause error
}

// Error returns, for example, "model gpt-5: rate_limited (status 429, 4 attempts)".
func (e *Error) Error() string {
	details := fmt.Sprintf("%d attempts", e.Attempts)
	if e.Status != 0 {
		details = fmt.Sprintf("status %d, %s", e.Status, details)
	}
	if e.Stopped != "" {
		details += ", out of " + e.Stopped
	}
	if e.RetryAfter > 0 {
		details += fmt.Sprintf(", again in %s", e.RetryAfter.Round(time.Millisecond))
	}
	return fmt.Sprintf("model %s: %s (%s)", cmp.Or(e.Model, "call"), e.Class, details)
}

// Unwrap returns the error of the caller's context if that ended the call, or nil.
func (e *Error) Unwrap() error { return e.cause }

// ServerError is the error in the response of a server, or the reason why there is none. In an
// Error and in log lines it holds neither the key nor secrets nor stretches of the prompt that the server repeats.
type ServerError struct {
	// Code, Type and Param are names, such as "model_not_found"; empty without one.
	Code  string `json:"code,omitempty"`
	Type  string `json:"type,omitempty"`
	Param string `json:"param,omitempty"`
	// Message is its beginning, at most 200 characters on one line.
	Message string `json:"message,omitempty"`

	inner string // Azure's code within the error, more specific than Code
}

func newServerError(e *openai.APIError) ServerError {
	code, _ := e.Code.(string)
	f := ServerError{Code: code, Type: e.Type, Message: e.Message}
	if e.Param != nil {
		f.Param = *e.Param
	}
	if e.InnerError != nil {
		f.inner = e.InnerError.Code
	}
	return f
}

// String returns the error on one line, such as
// "unsupported_value, invalid_request_error, param temperature: Only the default (1) is supported".
func (e ServerError) String() string {
	var names []string
	for _, name := range []string{e.inner, e.Code, e.Type} {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if e.Param != "" {
		names = append(names, "param "+e.Param)
	}
	s := strings.Join(names, ", ")
	if s != "" && e.Message != "" {
		s += ": "
	}
	return s + e.Message
}

// Limits of a server's message as it is shown.
const (
	shownRunes   = 200
	messageBytes = 4000 // that are looked at; a secret may extend beyond shownRunes
	promptBytes  = 16   // the shortest stretch of the prompt that counts as a repetition
)

// shown returns e as it may be shown: without the key, secrets and stretches of the prompt.
func (e ServerError) shown(key string, prompt ...string) ServerError {
	s := withoutKey(e.Message, key)
	s = strings.ToValidUTF8(s[:min(len(s), messageBytes)], "")
	for _, p := range prompt {
		s = without(s, p)
	}
	s, _ = redact.Redact(s)
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(s); len(runes) > shownRunes {
		s = string(runes[:shownRunes-1]) + "…"
	}
	e.Message = s
	for _, name := range []*string{&e.inner, &e.Code, &e.Type, &e.Param} {
		if found, _ := redact.Redact(*name); found != *name || withoutKey(*name, key) != *name {
			*name = ""
		}
	}
	return e
}

// without replaces the stretches of s that stand in the prompt. It reads the prompt once.
func without(s, prompt string) string {
	repeated := map[string]bool{} // the stretches of s with promptBytes
	for i := range len(s) - promptBytes + 1 {
		repeated[s[i:i+promptBytes]] = false
	}
	for i := range len(prompt) - promptBytes + 1 {
		if _, ok := repeated[prompt[i:i+promptBytes]]; ok {
			repeated[prompt[i:i+promptBytes]] = true
		}
	}
	var b strings.Builder
	end := 0 // of the last stretch
	for i := range s {
		switch {
		case i+promptBytes <= len(s) && repeated[s[i:i+promptBytes]]:
			if i >= end {
				b.WriteString("[...]")
			}
			end = i + promptBytes
		case i >= end:
			_, n := utf8.DecodeRuneInString(s[i:])
			b.WriteString(s[i : i+n])
		}
	}
	return b.String()
}

// withoutKey replaces a key in a text.
func withoutKey(s, key string) string {
	const shortest = 8 // length of keys; shorter texts may be part of any word
	if len(key) < shortest {
		return s
	}
	return strings.ReplaceAll(s, key, "[REDACTED]")
}
