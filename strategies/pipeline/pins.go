package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// pinnedShare is the share of the target that messages pinned by their paths may take up.
const pinnedShare = 4

// pinCalls pins groups for the rest of a run: those that call one of PinTools, and of those that
// read a path of PinPaths the newest of each, the newest first, as far as they fit. Groups are
// those of the log, in which a call and its replacement share one place.
func (p Pipeline) pinCalls(ctx context.Context, d *Draft, load plan.Loader) error {
	var seqs []chat.Seq
	for i := range d.entries {
		if plan.MakesCalls(&d.entries[i]) {
			seqs = append(seqs, d.entries[i].Seq)
		}
	}
	loaded, err := d.load(ctx, seqs, load)
	if err != nil {
		return fmt.Errorf("load tool calls to pin: %w", err)
	}
	defer d.drop(loaded)
	l := newLayout(d)
	seqs = seqs[:0]
	pin := func(id int32) { seqs = append(seqs, d.entries[id].Seq) }
	each := func(i int, do func(id int32)) {
		if k := l.placeOf[i]; k >= 0 {
			for g, k := &l.groups[l.places[k].group], int32(0); g.start+k < g.end; k++ {
				l.each(g.start+k, do)
			}
		}
	}
	left, pinned := p.Target/pinnedShare, map[string]bool{}
	for i := range slices.Backward(d.entries) {
		e := &d.entries[i]
		if !plan.MakesCalls(e) {
			continue
		}
		named := func(c chat.ToolCall) bool { return slices.Contains(p.PinTools, c.Name) }
		pins := slices.ContainsFunc(e.Message.ToolCalls, named)
		if found := p.pathsOf(e.Message); !pins && slices.ContainsFunc(found, func(s string) bool { return !pinned[s] }) {
			var size chat.Tokens
			each(i, func(id int32) {
				if d.entries[id].Included {
					size += d.entries[id].Tokens
				}
			})
			// What is written to a file is in the call, what is read from it in the result.
			if pins = size > 2*e.Tokens && (p.Target == 0 || size <= left); pins {
				left -= size
				for _, s := range found {
					pinned[s] = true
				}
			}
		}
		if pins {
			pin(int32(i))
			each(i, pin)
		}
	}
	slices.Sort(seqs)
	d.pin(seqs)
	return nil
}

// pathsOf returns the paths in the arguments of a message's calls that match PinPaths.
func (p Pipeline) pathsOf(m *chat.Message) []string {
	if len(p.PinPaths) == 0 {
		return nil
	}
	var out []string
	for i := range m.ToolCalls {
		d := json.NewDecoder(strings.NewReader(m.ToolCalls[i].Arguments))
		for {
			token, err := d.Token()
			if err != nil {
				break
			}
			s, _ := token.(string)
			for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&<>()=", r) }) {
				if slices.ContainsFunc(p.PinPaths, func(pattern string) bool { return endMatches(pattern, word) }) {
					out = append(out, word)
				}
			}
		}
	}
	return out
}

// endMatches reports whether the last elements of a path match a pattern of as many elements.
func endMatches(pattern, name string) bool {
	elements := strings.Split(strings.ReplaceAll(name, `\`, "/"), "/")
	n := strings.Count(pattern, "/") + 1
	if len(elements) < n {
		return false
	}
	ok, _ := path.Match(pattern, strings.Join(elements[len(elements)-n:], "/")) // validated with the policy
	return ok
}
