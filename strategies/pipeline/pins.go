package pipeline

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// pinnedShare is the share of the target that messages pinned by their paths may take up.
const pinnedShare = 4

// instructions is a group that holds texts which match PinPaths.
type instructions struct {
	seqs  []chat.Seq  // of the group, with the text of a skill that follows it
	size  chat.Tokens // in full, whether it is in the view or not
	reads []text
}

// text is what a reading has returned.
type text struct {
	reading
	size chat.Tokens
}

// add adds what has returned texts of a size.
func (g *instructions) add(reads []reading, size chat.Tokens) {
	for _, r := range reads {
		g.reads = append(g.reads, text{r, size})
	}
}

// pinCalls pins groups for the rest of a run: those that call one of PinTools, and those that
// hold the instructions of PinPaths, the newest first, as far as they fit. Those that do not are
// kept in the draft, for showAgain. Groups are those of the log, in which a call and its
// replacement share one place. The text of a skill that follows a call as a message of the user
// belongs to the call.
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
	var found []instructions
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
		one := instructions{seqs: []chat.Seq{e.Seq}}
		var results []chat.Tokens
		if k := l.placeOf[i]; k >= 0 {
			for g, k := &l.groups[l.places[k].group], int32(0); g.start+k < g.end; k++ {
				m := l.rep(g.start + k)
				one.size += m.Tokens
				if m.Role == chat.RoleTool {
					results = append(results, m.Tokens)
				}
				l.each(g.start+k, func(id int32) { one.seqs = append(one.seqs, d.entries[id].Seq) })
			}
		}
		calls := e.Message.ToolCalls
		for k := range calls[:min(len(calls), len(results))] {
			// What is written to a file is in the call, what is read from it in the result.
			if int(4*results[k]) > len(calls[k].Arguments) {
				one.add(p.readings(&calls[k]), results[k])
			}
		}
		if skill >= 0 {
			s := &d.entries[skill]
			one.seqs = append(one.seqs, s.Seq)
			one.size += s.Tokens
			one.add(p.skillAt(skillFolder(s)), s.Tokens)
		}
		skill = -1
		switch {
		case slices.ContainsFunc(calls, func(c chat.ToolCall) bool { return slices.Contains(p.PinTools, c.Name) }):
			seqs = append(seqs, one.seqs...)
		case len(one.reads) > 0 && (d.open == 0 || e.Included): // before an open loop nothing comes back
			found = append(found, one)
		}
	}
	left := p.Target / pinnedShare
	for _, one := range latest(found) {
		if p.Target > 0 && one.size > left {
			d.instructions = append(d.instructions, one)
			continue
		}
		left -= one.size
		seqs = append(seqs, one.seqs...)
	}
	slices.Sort(seqs)
	d.pin(slices.Compact(seqs))
	return nil
}

// latest returns those of the groups, which are ordered from the newest, that hold the latest
// text of a path: the newest reading that is not of a part, or else the newest of each part. A
// reading with less than half of what another one returned is no whole one, whatever was asked
// for: the file may be unchanged, the tool says, or is gone.
func latest(all []instructions) []instructions {
	whole := map[string]chat.Tokens{}
	for i := range all {
		for _, r := range all[i].reads {
			if r.part == "" {
				whole[r.of] = max(whole[r.of], r.size)
			}
		}
	}
	var out []instructions
	done := map[reading]bool{}
	for _, one := range all {
		pins := false
		for _, r := range one.reads {
			most := whole[r.of]
			if done[r.reading] || most > 0 && (r.part != "" || 2*r.size < most) {
				continue
			}
			pins, done[r.reading] = true, true
		}
		if pins {
			out = append(out, one)
		}
	}
	return out
}

// showAgain includes the instructions that did not fit into their share of the target, and that
// the steps or an earlier run have excluded, the newest first, as far as the view stays within
// the target.
func (p Pipeline) showAgain(d *Draft, totals *plan.Totals) {
	if d.open > 0 {
		return
	}
	before := d.changes
	for _, one := range d.instructions {
		var size chat.Tokens
		ids := d.ids(nil, chat.RangesOf(one.seqs...))
		ids = slices.DeleteFunc(ids, func(id int32) bool { return !plan.FromApplication(d.entries[id].Meta) })
		for _, id := range ids {
			if !d.entries[id].Included {
				size += d.entries[id].Tokens
			}
		}
		if size == 0 || totals.IncludedTokens+size > p.Target {
			continue
		}
		for _, id := range ids {
			d.include(id)
		}
		totals.IncludedTokens += size
	}
	if d.changes > before {
		d.Refresh()
		*totals = d.Transcript().Totals()
	}
}

// isSkill reports whether a message of the user that was loaded holds the text of a skill.
func isSkill(e *plan.Entry) bool {
	return e.Role == chat.RoleUser && e.Message != nil && strings.HasPrefix(e.Message.Content.String(), chat.SkillPrefix)
}

// skillFolder returns the folder of the skill that a message holds.
func skillFolder(e *plan.Entry) string {
	line, _, _ := strings.Cut(e.Message.Content.String(), "\n")
	return strings.TrimSpace(strings.TrimPrefix(line, chat.SkillPrefix))
}

// matches reports whether a name matches one of PinPaths.
func (p Pipeline) matches(name string) bool {
	return slices.ContainsFunc(p.PinPaths, func(pattern string) bool { return endMatches(pattern, name) })
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
