// Command strategy is compactor with a strategy of its own: it has all commands, the
// configuration and the models, and "drop_failed" beside the built-in strategies.
//
//	go run ./deploy/examples/strategy compact-file history.jsonl --strategy drop_failed:keep_last=1
//	go run ./deploy/examples/strategy serve
package main

import (
	"context"
	"strings"

	"github.com/sessionstore/compactor/cmd"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

func main() {
	cmd.Main(func(r *plan.Registry) error {
		return r.Register("drop_failed", "Excludes tool calls whose results report a failure.", newDropFailed)
	})
}

// dropFailed excludes tool calls whose results begin with prefix, but for the
// newest keep of them.
type dropFailed struct {
	prefix string
	keep   int
}

// newDropFailed reads the parameters; `strategies drop_failed` prints them, and values
// out of their range are rejected.
func newDropFailed(args *plan.Args) (plan.Strategy, error) {
	return dropFailed{
		prefix: args.Text("prefix", "Error", "beginning of the result of a failed call"),
		keep:   int(args.Int(plan.Int{Name: "keep_last", Default: 1, Doc: "failed calls to keep"})),
	}, nil
}

// Name implements plan.Strategy.
func (dropFailed) Name() string { return "drop_failed" }

// Reads implements plan.Reader: only the contents of tool results are loaded.
func (dropFailed) Reads(t *plan.Transcript) (seqs []chat.Seq) {
	for _, e := range t.Entries {
		if e.Included && e.Role == chat.RoleTool {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

// Plan implements plan.Strategy. A tool call and its results are one group, which is
// excluded or kept as a whole.
func (s dropFailed) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	var failed []int
	for i, g := range t.Groups() {
		if g.Kind != chat.GroupToolCall || !t.GroupIncluded(i) {
			continue
		}
		fails, err := s.fails(t, g)
		if err != nil {
			return chat.Plan{}, err
		}
		if fails {
			failed = append(failed, i)
		}
	}
	var out plan.SeqSet
	for _, i := range failed[:max(0, len(failed)-s.keep)] {
		t.GroupSeqs(&out, i)
	}
	return out.Exclude("failed_tool_call"), nil
}

// fails reports whether a result in the group begins with the prefix.
func (s dropFailed) fails(t *plan.Transcript, g chat.Group) (bool, error) {
	for i := g.Start; i < g.End; i++ {
		if t.Entries[i].Role != chat.RoleTool {
			continue
		}
		m, err := t.Read(i)
		if err != nil || strings.HasPrefix(m.Content.String(), s.prefix) {
			return err == nil, err
		}
	}
	return false, nil
}
