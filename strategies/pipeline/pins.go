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

// instructions is a group that holds texts which match PinPaths.
type instructions struct {
	seqs  []chat.Seq
	size  chat.Tokens // in full, whether it is in the view or not
	reads []reading
}

// reading is a reading of a path or a tool, or of a part of it.
type reading struct {
	of, part string      // part is "" for the whole
	size     chat.Tokens // of the text that it has returned
}

// pinCalls pins groups for the rest of a run: those that call one of PinTools, and those that
// hold the instructions of PinPaths, the newest first, as far as they fit. Those that do not are
// kept in the draft, for showAgain.
func (p Pipeline) pinCalls(ctx context.Context, d *Draft, load plan.Loader) error {
	if len(p.PinTools)+len(p.PinPaths) == 0 {
		return nil
	}
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
	d.arrange()
	seqs = seqs[:0]
	var found []instructions
	var skill instructions // the text of a skill, which belongs to the call before it
	for i := range slices.Backward(d.entries) {
		e := &d.entries[i]
		if !plan.MakesCalls(e) {
			if folder, ok := skillFolder(e); ok {
				skill = instructions{[]chat.Seq{e.Seq}, e.Tokens, p.skillAt(folder, e.Tokens)}
			} else if e.Role != chat.RoleTool {
				skill = instructions{}
			}
			continue
		}
		one := p.instructionsOf(d, int32(i))
		one = instructions{append(one.seqs, skill.seqs...), one.size + skill.size, append(one.reads, skill.reads...)}
		skill = instructions{}
		switch {
		case slices.ContainsFunc(e.Message.ToolCalls, func(c chat.ToolCall) bool { return slices.Contains(p.PinTools, c.Name) }):
			seqs = append(seqs, one.seqs...)
		case len(one.reads) > 0 && (d.frozen == 0 || e.Included): // before an open loop nothing comes back
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
	d.pin(seqs)
	return nil
}

// skillFolder returns the folder of the skill whose text a message of the user is.
func skillFolder(e *plan.Entry) (folder string, ok bool) {
	if e.Role != chat.RoleUser || e.Message == nil {
		return "", false
	}
	line, _, _ := strings.Cut(e.Message.Content.String(), "\n")
	folder, ok = strings.CutPrefix(line, chat.SkillPrefix)
	return strings.TrimSpace(folder), ok
}

// instructionsOf returns the group of a call in the log, in which a call and its replacement share
// one place, with the readings of its calls.
func (p Pipeline) instructionsOf(d *Draft, id int32) instructions {
	e := &d.entries[id]
	one := instructions{seqs: []chat.Seq{e.Seq}}
	var results []chat.Tokens
	if k := int(d.marks[id].place); k >= 0 {
		g := d.groupOf(k)
		for k := g.Start; k < g.End; k++ {
			m := d.rep(k)
			one.size += m.Tokens
			if m.Role == chat.RoleTool {
				results = append(results, m.Tokens)
			}
			for id := range d.at(k) {
				one.seqs = append(one.seqs, d.entries[id].Seq)
			}
		}
	}
	calls := e.Message.ToolCalls
	for k := range calls[:min(len(calls), len(results))] {
		// A text that is written to a file is in the call, one that is read from it in the result.
		if int(4*results[k]) > len(calls[k].Arguments) {
			one.reads = append(one.reads, p.readings(&calls[k], results[k])...)
		}
	}
	return one
}

// The commands that show a file or a part of it, and those that search: greps in any place of a
// pipeline, the others as the name of a program that has its arguments apart.
var (
	wholeReaders = []string{"cat", "bat", "nl", "less", "more", "type", "Get-Content"}
	partReaders  = []string{"head", "tail", "sed", "awk", "cut"}
	greps        = []string{"grep", "egrep", "fgrep", "rg", "ag", "ack", "Select-String"}
	searchers    = append([]string{"find", "fd", "ls", "pattern", "query", "regex"}, greps...)
	searchTools  = []string{"grep", "search", "glob", "find"}
)

// readings returns the paths and tools of PinPaths that a call reads; nothing for a search,
// which returns lines from anywhere.
func (p Pipeline) readings(c *chat.ToolCall, size chat.Tokens) []reading {
	if len(p.PinPaths) == 0 {
		return nil
	}
	if tool := c.Name + "()"; p.matches(tool) {
		return []reading{{of: tool + c.Arguments, size: size}}
	}
	name := strings.ToLower(c.Name)
	if slices.ContainsFunc(searchTools, func(s string) bool { return strings.Contains(name, s) }) {
		return nil
	}
	var out []reading
	part, command := false, false
	d := json.NewDecoder(strings.NewReader(c.Arguments))
	d.UseNumber()
	for token, err := d.Token(); err == nil; token, err = d.Token() {
		s, text := token.(string)
		if _, number := token.(json.Number); number || text && isNumber(s) {
			part = part || !command // beside a command, it is about its execution
			continue
		}
		shown, cut := p.shownBy(s)
		word := !strings.ContainsAny(s, " \t\n")
		switch {
		case slices.Contains(searchers, s), slices.Contains(shown, ""):
			return nil
		case slices.Contains(partReaders, s):
			part = true
		case len(shown) > 0:
			part, command = cut, true
			for _, name := range shown {
				out = append(out, reading{of: name, size: size})
			}
		case (word || path.IsAbs(s) && !strings.Contains(s, "\n")) && p.matches(s):
			out = append(out, reading{of: s, size: size})
		case strings.Contains(name, "skill") && s != "" && word:
			out = append(out, p.skillAt("skills/"+s, size)...)
		}
	}
	for i := range out {
		if part {
			out[i].part = c.Arguments
		}
	}
	return out
}

// isNumber reports whether a text consists of digits.
func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// shownBy returns the paths of PinPaths that a shell command shows, and whether it shows a part
// of them; "" among them if it searches.
func (p Pipeline) shownBy(command string) (shown []string, part bool) {
	for simple := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune("|;&\n", r) }) {
		words := strings.FieldsFunc(simple, func(r rune) bool { return strings.ContainsRune(" \t\r\"'`<>()=", r) })
		if len(words) < 2 {
			continue
		}
		program := path.Base(words[0])
		cuts := slices.Contains(partReaders, program)
		switch {
		case slices.Contains(greps, program):
			return []string{""}, false
		case !cuts && !slices.Contains(wholeReaders, program):
			continue
		}
		part = part || cuts
		shown = append(shown, slices.DeleteFunc(words[1:], func(w string) bool { return !p.matches(w) })...)
	}
	return shown, part
}

// skillAt returns the reading of the skill in a folder, if PinPaths match the folder or its file.
func (p Pipeline) skillAt(folder string, size chat.Tokens) []reading {
	if folder = strings.TrimRight(folder, "/"); p.matches(folder) || p.matches(folder+"/SKILL.md") {
		return []reading{{of: folder + "/SKILL.md", size: size}}
	}
	return nil
}

// matches reports whether the last elements of a path match one of PinPaths that has as many.
func (p Pipeline) matches(name string) bool {
	elements := strings.Split(strings.ReplaceAll(name, `\`, "/"), "/")
	return slices.ContainsFunc(p.PinPaths, func(pattern string) bool {
		first := len(elements) - strings.Count(pattern, "/") - 1
		if first < 0 {
			return false
		}
		ok, _ := path.Match(pattern, strings.Join(elements[first:], "/")) // validated with the policy
		return ok
	})
}

// latest returns those of the groups, which are ordered from the newest, that hold the latest
// text of a path: the newest reading that is not of a part, or else the newest of each part. A
// reading with less than half of the tokens of another one is no whole one, whatever was asked
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
	done := map[[2]string]bool{}
	for _, one := range all {
		pins := false
		for _, r := range one.reads {
			key, most := [2]string{r.of, r.part}, whole[r.of]
			if done[key] || most > 0 && (r.part != "" || 2*r.size < most) {
				continue
			}
			pins, done[key] = true, true
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
func (p Pipeline) showAgain(d *Draft) {
	if d.frozen > 0 || len(d.instructions) == 0 {
		return
	}
	tokens := d.totals().IncludedTokens
	for _, one := range d.instructions {
		var size chat.Tokens
		ids := slices.DeleteFunc(d.idsOf(one.seqs), func(id int32) bool { return !plan.FromApplication(d.entries[id].Meta) })
		for _, id := range ids {
			if !d.entries[id].Included {
				size += d.entries[id].Tokens
			}
		}
		if size == 0 || tokens+size > p.Target {
			continue
		}
		for _, id := range ids {
			d.include(id)
		}
		tokens += size
	}
}
