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
// those of the log, in which a call and its replacement share one place. The text of a skill that
// follows a call as a message of the user belongs to the call.
func (p Pipeline) pinCalls(ctx context.Context, d *Draft, load plan.Loader) error {
	var seqs []chat.Seq
	for i := range d.entries {
		if e := &d.entries[i]; plan.MakesCalls(e) || e.Role == chat.RoleUser && i > 0 && d.entries[i-1].Role == chat.RoleTool {
			seqs = append(seqs, e.Seq)
		}
	}
	loaded, err := d.load(ctx, seqs, load)
	if err != nil {
		return fmt.Errorf("load tool calls to pin: %w", err)
	}
	defer d.drop(loaded)
	l := newLayout(d)
	seqs = seqs[:0]
	each := func(i int, do func(id int32)) {
		if k := l.placeOf[i]; k >= 0 {
			for g, k := &l.groups[l.places[k].group], int32(0); g.start+k < g.end; k++ {
				l.each(g.start+k, do)
			}
		}
	}
	left, pinned := p.Target/pinnedShare, map[string]bool{}
	skill := -1 // the text that belongs to the call before it
	for i := range slices.Backward(d.entries) {
		e := &d.entries[i]
		if !plan.MakesCalls(e) {
			if isSkill(e) {
				skill = i
			} else if e.Role != chat.RoleTool {
				skill = -1
			}
			continue
		}
		members := []int32{int32(i)}
		each(i, func(id int32) { members = append(members, id) })
		found := p.pathsOf(e.Message)
		if skill >= 0 {
			members = append(members, int32(skill))
			found = append(found, p.matching(skillFolder(&d.entries[skill]))...)
		}
		skill = -1
		pins := slices.ContainsFunc(e.Message.ToolCalls, func(c chat.ToolCall) bool { return slices.Contains(p.PinTools, c.Name) })
		if !pins && slices.ContainsFunc(found, func(s string) bool { return !pinned[s] }) {
			var size chat.Tokens
			for _, id := range members[1:] {
				if d.entries[id].Included {
					size += d.entries[id].Tokens
				}
			}
			// What is written to a file is in the call, what is read from it in the result.
			if pins = size > 2*e.Tokens && (p.Target == 0 || size <= left); pins {
				left -= size
				for _, s := range found {
					pinned[s] = true
				}
			}
		}
		if pins {
			for _, id := range members {
				seqs = append(seqs, d.entries[id].Seq)
			}
		}
	}
	slices.Sort(seqs)
	d.pin(slices.Compact(seqs))
	return nil
}

// isSkill reports whether a message of the user that was loaded holds the text of a skill.
func isSkill(e *plan.Entry) bool {
	return e.Role == chat.RoleUser && e.Message != nil && strings.HasPrefix(e.Message.Content.String(), chat.SkillPrefix)
}

// skillFolder returns the folder of the skill that a message holds.
func skillFolder(e *plan.Entry) string {
	line, _, _ := strings.Cut(e.Message.Content.String(), "\n")
	return strings.TrimPrefix(line, chat.SkillPrefix)
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
			out = append(out, p.matching(s)...)
		}
	}
	return out
}

// matching returns the words of a text that match PinPaths.
func (p Pipeline) matching(s string) []string {
	var out []string
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&<>()=", r) }) {
		if slices.ContainsFunc(p.PinPaths, func(pattern string) bool { return endMatches(pattern, word) }) {
			out = append(out, word)
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
