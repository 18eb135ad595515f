package llmtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Behaviour is how the server answers one request.
type Behaviour string

// The behaviours. Each "paid" one reports usage.
const (
	Normal             Behaviour = "normal"                // paid: a summary with the sections that are asked for
	RateLimited        Behaviour = "rate_limited"          // 429
	RateLimitedAfter   Behaviour = "rate_limited_after"    // 429 with Retry-After
	ServerError        Behaviour = "server_error"          // 500
	BadGateway         Behaviour = "bad_gateway"           // 502 with a page of HTML
	Overloaded         Behaviour = "overloaded"            // 529, as Anthropic's gateways
	TooLarge           Behaviour = "too_large"             // 413 of a proxy
	Slow               Behaviour = "slow"                  // paid: normal, after Delay
	Hang               Behaviour = "hang"                  // nothing until the client goes
	Cut                Behaviour = "cut"                   // the connection drops within the body
	Empty              Behaviour = "empty"                 // paid: content ""
	NullContent        Behaviour = "null_content"          // paid: content null
	Thinking           Behaviour = "thinking"              // paid: reasoning only, cut off before the answer
	ThinkingAloud      Behaviour = "thinking_aloud"        // paid: normal, reasoning beside and within the content
	NoChoices          Behaviour = "no_choices"            // paid: an empty list of choices
	NoUsage            Behaviour = "no_usage"              // normal, with usage null
	Length             Behaviour = "length"                // paid: the answer's first half
	Refusal            Behaviour = "refusal"               // paid: in the field for it
	Filter             Behaviour = "filter"                // paid: finish reason content_filter
	FilterError        Behaviour = "filter_error"          // 400 with code content_filter
	InvalidJSON        Behaviour = "invalid_json"          // 200, and no JSON
	EchoSecret         Behaviour = "echo_secret"           // paid: repeats what it was sent, the key too
	Inject             Behaviour = "inject"                // paid: normal, with instructions for the reader
	WrongLanguage      Behaviour = "wrong_language"        // paid: normal, in another script
	InventedQuote      Behaviour = "invented_quote"        // paid: normal, and the user "said" what he did not
	ContextTooLong     Behaviour = "context_too_long"      // 400 with code context_length_exceeded
	ContextTooLongText Behaviour = "context_too_long_vllm" // 400 that says so in words alone
	InsufficientQuota  Behaviour = "insufficient_quota"    // 429 for good
	AuthError          Behaviour = "auth_error"            // 401, which repeats the key as OpenAI's does
	BadRequest         Behaviour = "bad_request"           // 400 for a parameter
	ErrorBody          Behaviour = "error_body"            // 200 with an error
)

// Behaviours lists all behaviours.
func Behaviours() []Behaviour {
	return []Behaviour{
		Normal, RateLimited, RateLimitedAfter, ServerError, BadGateway, Overloaded, TooLarge, Slow, Hang, Cut,
		Empty, NullContent, Thinking, ThinkingAloud, NoChoices, NoUsage, Length, Refusal, Filter, FilterError,
		InvalidJSON, EchoSecret, Inject, WrongLanguage, InventedQuote, ContextTooLong, ContextTooLongText,
		InsufficientQuota, AuthError, BadRequest, ErrorBody,
	}
}

// Step is one line of a script.
type Step struct {
	// Behaviour is how the server behaves; empty is Normal.
	Behaviour Behaviour
	// Text takes the place of the words that the behaviour would choose: of the
	// answer, the refusal or the error message.
	Text string
	// Delay is waited before Slow answers; 0 is a second.
	Delay time.Duration
	// RetryAfter is what RateLimitedAfter sends: a number of seconds or an HTTP date;
	// empty is "1".
	RetryAfter string
	// Times is for how many requests in a row the step is played; 0 is one.
	Times int
}

// Script is the content of a file.
type Script struct {
	// Steps are played in order, one for each request.
	Steps []Step
	// Loop begins again at the end; else what follows is Normal.
	Loop bool
}

// Parse reads a script. A step is the name of a behaviour, or a map:
//
//	loop: true
//	steps:
//	  - normal
//	  - {behaviour: slow, delay: 2s}
//	  - {behaviour: rate_limited_after, retry_after: "3", times: 2}
//	  - {behaviour: normal, text: "## Goal\nShip it."}
//
// It is strict: the error names each thing that is not understood, with its line
// and what is allowed.
func Parse(r io.Reader) (Script, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return Script{}, fmt.Errorf("read script: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return Script{}, errors.New("script: empty: want steps")
	} else if err != nil {
		return Script{}, fmt.Errorf("script: %w", err)
	}
	var more yaml.Node
	if !errors.Is(dec.Decode(&more), io.EOF) {
		return Script{}, errors.New("script: want one document")
	}
	var p parser
	s := p.script(doc.Content[0])
	return s, errors.Join(p.errs...)
}

// parser collects faults.
type parser struct{ errs []error }

func (p *parser) fault(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("script: line %d: %s", n.Line, fmt.Sprintf(format, args...)))
}

// fields calls a setter for each key of a map.
func (p *parser) fields(n *yaml.Node, set map[string]func(*yaml.Node), names ...string) {
	if n.Kind != yaml.MappingNode {
		p.fault(n, "want a map with %s", strings.Join(names, ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		f, ok := set[k.Value]
		switch {
		case !ok:
			p.fault(k, "unknown key %q: want %s", k.Value, strings.Join(names, ", "))
		case seen[k.Value]:
			p.fault(k, "%s is given twice", k.Value)
		default:
			seen[k.Value] = true
			f(v)
		}
	}
}

func (p *parser) script(n *yaml.Node) (s Script) {
	p.fields(n, map[string]func(*yaml.Node){
		"loop": func(v *yaml.Node) {
			if v.Kind != yaml.ScalarNode || v.Tag != "!!bool" || v.Decode(&s.Loop) != nil {
				p.fault(v, "loop: want true or false")
			}
		},
		"steps": func(v *yaml.Node) {
			if v.Kind != yaml.SequenceNode || len(v.Content) == 0 {
				p.fault(v, "steps: want a list of behaviours")
				return
			}
			for _, item := range v.Content {
				s.Steps = append(s.Steps, p.step(item))
			}
		},
	}, "steps", "loop")
	if len(s.Steps) == 0 && len(p.errs) == 0 {
		p.fault(n, "want steps")
	}
	return s
}

func (p *parser) step(n *yaml.Node) (s Step) {
	if n.Kind == yaml.ScalarNode {
		s.Behaviour = p.behaviour(n)
		return s
	}
	p.fields(n, map[string]func(*yaml.Node){
		"behaviour":   func(v *yaml.Node) { s.Behaviour = p.behaviour(v) },
		"text":        func(v *yaml.Node) { s.Text = p.text("text", v) },
		"retry_after": func(v *yaml.Node) { s.RetryAfter = p.text("retry_after", v) },
		"delay": func(v *yaml.Node) {
			d, err := time.ParseDuration(v.Value)
			if v.Kind != yaml.ScalarNode || err != nil || d < 0 {
				p.fault(v, "delay: want a duration such as 500ms or 2s")
			}
			s.Delay = d
		},
		"times": func(v *yaml.Node) {
			if v.Kind != yaml.ScalarNode || v.Tag != "!!int" || v.Decode(&s.Times) != nil || s.Times < 1 {
				p.fault(v, "times: want a whole number, 1 or more")
			}
		},
	}, "behaviour", "text", "delay", "retry_after", "times")
	if s.Behaviour == "" && len(p.errs) == 0 {
		p.fault(n, "want a behaviour")
	}
	return s
}

func (p *parser) text(key string, n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.fault(n, "%s: want text", key)
		return ""
	}
	return n.Value
}

func (p *parser) behaviour(n *yaml.Node) Behaviour {
	b := Behaviour(n.Value)
	if n.Kind != yaml.ScalarNode || !slices.Contains(Behaviours(), b) {
		var names []string
		for _, b := range Behaviours() {
			names = append(names, string(b))
		}
		p.fault(n, "unknown behaviour %q: want one of %s", n.Value, strings.Join(names, ", "))
	}
	return b
}
