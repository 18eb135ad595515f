package llmtest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Behaviour is the response of the server to one request.
type Behaviour string

// The behaviours. Those marked "usage" report usage.
const (
	Normal             Behaviour = "normal"                // usage: a summary with the requested sections
	RateLimited        Behaviour = "rate_limited"          // 429
	RateLimitedAfter   Behaviour = "rate_limited_after"    // 429 with Retry-After
	ServerError        Behaviour = "server_error"          // 500
	BadGateway         Behaviour = "bad_gateway"           // 502 with an HTML page
	Overloaded         Behaviour = "overloaded"            // 529, as Anthropic's gateways
	TooLarge           Behaviour = "too_large"             // 413, as from a proxy
	Slow               Behaviour = "slow"                  // usage: normal, after Delay
	Hang               Behaviour = "hang"                  // no response until the client disconnects
	Cut                Behaviour = "cut"                   // the connection drops within the body
	Empty              Behaviour = "empty"                 // usage: the content ""
	NullContent        Behaviour = "null_content"          // usage: the content null
	Thinking           Behaviour = "thinking"              // usage: reasoning, cut off before the answer
	ThinkingAloud      Behaviour = "thinking_aloud"        // usage: normal, with reasoning in its field and in the content
	NoChoices          Behaviour = "no_choices"            // usage: no choices
	NoUsage            Behaviour = "no_usage"              // normal, with usage null
	Length             Behaviour = "length"                // usage: the first half of the answer
	Refusal            Behaviour = "refusal"               // usage: a refusal in the field for it
	Filter             Behaviour = "filter"                // usage: finish reason content_filter
	FilterError        Behaviour = "filter_error"          // 400 with code content_filter
	InvalidJSON        Behaviour = "invalid_json"          // 200 with incomplete JSON
	EchoSecret         Behaviour = "echo_secret"           // usage: repeats the request and the key
	Inject             Behaviour = "inject"                // usage: normal, with injected instructions
	WrongLanguage      Behaviour = "wrong_language"        // usage: normal, in another script
	InventedQuote      Behaviour = "invented_quote"        // usage: normal, with an invented quote of the user
	ContextTooLong     Behaviour = "context_too_long"      // 400 with code context_length_exceeded
	ContextTooLongText Behaviour = "context_too_long_vllm" // the same as a message without a code
	InsufficientQuota  Behaviour = "insufficient_quota"    // 429 with code insufficient_quota
	AuthError          Behaviour = "auth_error"            // 401 that repeats the key, as OpenAI does
	BadRequest         Behaviour = "bad_request"           // 400 for a parameter
	BadRequestEcho     Behaviour = "bad_request_echo"      // 400 that repeats the request and the key
	ModelNotFound      Behaviour = "model_not_found"       // 404 with code model_not_found
	ErrorBody          Behaviour = "error_body"            // 200 with an error
)

// paidBehaviours lists the behaviours that report usage.
var paidBehaviours = []Behaviour{
	Normal, Slow, Empty, NullContent, Thinking, ThinkingAloud, NoChoices, Length, Refusal, Filter,
	EchoSecret, Inject, WrongLanguage, InventedQuote,
}

// paid reports whether the behaviour reports usage.
func (b Behaviour) paid() bool { return slices.Contains(paidBehaviours, b) }

// Behaviours returns all behaviours.
func Behaviours() []Behaviour {
	return append(slices.Clone(paidBehaviours),
		RateLimited, RateLimitedAfter, ServerError, BadGateway, Overloaded, TooLarge, Hang, Cut, NoUsage, FilterError,
		InvalidJSON, ContextTooLong, ContextTooLongText, InsufficientQuota, AuthError, BadRequest, BadRequestEcho, ModelNotFound, ErrorBody)
}

// Step is one step of a script.
type Step struct {
	// Behaviour defaults to Normal.
	Behaviour Behaviour `yaml:"behaviour"`
	// Text replaces the default text of the behaviour: of the answer, the refusal or the
	// error message.
	Text string `yaml:"text"`
	// Delay is the time before Slow answers. Defaults to a second.
	Delay time.Duration `yaml:"delay"`
	// RetryAfter is the header of RateLimitedAfter, a number of seconds or an HTTP date.
	// Defaults to "1".
	RetryAfter string `yaml:"retry_after"`
	// Times is the number of consecutive requests that the step applies to. Defaults to 1.
	Times int `yaml:"times"`
}

// Script is a sequence of steps.
type Script struct {
	// Steps are played in order, one per request.
	Steps []Step `yaml:"steps"`
	// Loop starts again after the last step; otherwise Normal follows.
	Loop bool `yaml:"loop"`
}

// Parse reads a script in YAML. A step is the name of a behaviour or a map:
//
//	loop: true
//	steps:
//	  - normal
//	  - {behaviour: slow, delay: 2s}
//	  - {behaviour: rate_limited_after, retry_after: "3", times: 2}
//	  - {behaviour: normal, text: "## Goal\nShip it."}
//
// The error lists all unknown keys and invalid values with their lines.
func Parse(r io.Reader) (Script, error) {
	dec := yaml.NewDecoder(r)
	dec.KnownFields(true)
	var s Script
	err := dec.Decode(&s)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return Script{}, fmt.Errorf("script: %w", err)
	case len(s.Steps) == 0:
		return Script{}, errors.New("script: want steps")
	case !errors.Is(dec.Decode(&yaml.Node{}), io.EOF):
		return Script{}, errors.New("script: want one document")
	}
	return s, nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Step) UnmarshalYAML(n *yaml.Node) error {
	type plain Step
	var wrong yaml.TypeError // the decoder collects errors of this type
	check := func(ok bool, n *yaml.Node, format string, args ...any) {
		if !ok {
			wrong.Errors = append(wrong.Errors, fmt.Sprintf("line %d: %s", n.Line, fmt.Sprintf(format, args...)))
		}
	}
	if n.Kind == yaml.ScalarNode {
		s.Behaviour = Behaviour(n.Value)
	} else {
		if err, ok := errors.AsType[*yaml.TypeError](n.Decode((*plain)(s))); ok {
			wrong.Errors = err.Errors
		}
		keys := []string{"behaviour", "text", "delay", "retry_after", "times"}
		for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
			k := n.Content[i]
			check(slices.Contains(keys, k.Value), k, "unknown key %q: want %s", k.Value, strings.Join(keys, ", "))
			check(k.Value != "times" || s.Times > 0, k, "times: want a whole number, 1 or more")
		}
		check(s.Delay >= 0, n, "delay: want 0 or more")
	}
	check(slices.Contains(Behaviours(), s.Behaviour), n, "behaviour %q: want one of %s", s.Behaviour, Behaviours())
	if len(wrong.Errors) > 0 {
		return &wrong
	}
	return nil
}
