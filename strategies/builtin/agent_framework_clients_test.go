package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// afClients makes strategies, each with a summarizer of its own, and keeps what
// the summarizers were asked, and what each pass logged of their failures.
type afClients struct {
	// list groups the messages for the strategies; nil: this package does.
	list  *afList
	calls []any
	log   [][]string
}

// afSummarization logs as the reference does: a warning for each summary that was not
// written, and an error once three in a row were not.
type afSummarization struct {
	*summarization
	clients *afClients
	failed  int
}

func (s *afSummarization) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	p, err := s.summarization.Plan(ctx, t)
	levels := &s.clients.log[len(s.clients.log)-1]
	switch {
	case errors.Is(err, plan.ErrNoSummary):
		*levels = append(*levels, "warning")
		if s.failed++; s.failed == 3 {
			*levels = append(*levels, "error")
		}
	case !p.Empty():
		s.failed = 0
	}
	return p, err
}

func (c *afClients) strategy(spec plan.Params) (plan.Strategy, error) {
	p := maps.Clone(spec)
	name, _ := p["type"].(string)
	delete(p, "type")
	registry := Registry()
	var steps []plan.Strategy
	var faults []error
	switch name {
	case "truncation":
		if p["tokenizer"] != nil {
			p["metric"] = metricTokens
		}
		delete(p, "tokenizer")
	case "summarization":
		mode, _ := p["client"].(string)
		registry.Summarizer = c.client(mode)
		delete(p, "client")
		delete(p, "tokenizer")
		for key, null := range map[string]any{"threshold": 0, "prompt": "", "max_summary_input_tokens": math.MaxInt64} {
			if v, ok := p[key]; ok && v == nil {
				p[key] = null
			}
		}
	case "token_budget":
		delete(p, "strategies")
		for _, spec := range list(spec["strategies"]) {
			step, err := c.strategy(spec.(plan.Params))
			steps, faults = append(steps, step), append(faults, err)
		}
	}
	s, err := registry.New(name, p)
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	if b, ok := s.(*tokenBudget); ok {
		b.steps = steps
	}
	if c.list == nil {
		return s, nil
	}
	grouped := func(s plan.Strategy) plan.Strategy { return afGrouped{s, c.list} }
	switch s := s.(type) {
	case *summarization:
		return grouped(&afSummarization{summarization: s, clients: c}), nil
	case *tokenBudget:
		s.fallback = grouped(s.fallback)
	case *contextWindow: // the reference drops groups in both phases
		for i := range s.Steps {
			p := s.Steps[i].(pipeline.Pipeline)
			s.Steps[i] = &tokenBudget{
				budget: p.Target, steps: []plan.Strategy{grouped(p.Steps[0])}, earlyStop: true, fallback: grouped(dropOldest(p.Target)),
			}
		}
	default:
		return grouped(s), nil
	}
	return s, nil
}

var afItem = regexp.MustCompile(`(?m)^[0-9]+\. \[`)

// client returns the summarizer of the vectors in one of its modes.
func (c *afClients) client(mode string) plan.Summarizer {
	calls := 0
	return plan.Func(func(_ context.Context, r plan.Request) (string, error) {
		n := len(afItem.FindAllString(r.User, -1))
		sum := sha256.Sum256([]byte(r.User))
		call := map[string]any{"system": r.System, "items": n, "user_sha256": hex.EncodeToString(sum[:])[:16]}
		if r.System == defaultSummaryPrompt {
			call["system"] = "default"
		}
		c.calls = append(c.calls, call)
		calls++
		return afAnswer(mode, calls, n)
	})
}

// afAnswer returns the answer to a call, counted from 1, with so many lines.
func afAnswer(mode string, call, lines int) (string, error) {
	if list, ok := strings.CutPrefix(mode, "seq:"); ok {
		mode = "count"
		if modes := strings.Split(list, ","); call <= len(modes) {
			mode = modes[call-1]
		}
	}
	failing := 0
	if n, ok := strings.CutPrefix(mode, "fail_first"); ok {
		failing = 1
		if n != "" {
			failing, _ = strconv.Atoi(strings.TrimPrefix(n, "_"))
		}
	}
	text := fmt.Sprintf("SUMMARY(%d)", lines)
	switch {
	case mode == "fail" || call <= failing:
		return "", errors.New("the model fails")
	case mode == "padded":
		return "\n  " + text + " \t\n", nil
	case mode == "long":
		return text + " " + strings.Repeat("lorem ", 60), nil
	case mode == "multi":
		return text + "\npart two", nil
	case mode == "empty":
		return "   ", nil
	case mode == "none":
		return "", nil
	}
	return text, nil
}
