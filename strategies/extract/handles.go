package extract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	maxHandles     = 48
	maxHandleText  = 80   // characters
	maxHandleID    = 100  // bytes
	minHandleID    = 4    // bytes of an id that is not mistaken for another number
	maxHandleInput = 4000 // bytes of a command or of an end of a result
)

// handle is something that a call opened and that later calls may need: a process, a
// subagent, a branch. Its id is unknownID if no text says it.
type handle struct {
	kind, id, text, since string
	inProgress            bool // it is worked on now
}

const (
	unknownID      = "?"
	inProgressMark = " (in progress)"
)

// String returns the line of the handle, which parseHandle reads.
func (h handle) String() string {
	id := h.id
	if h.inProgress {
		id += inProgressMark
	}
	return openMark + h.kind + " " + id + strings.TrimSuffix(", since "+h.since+": "+h.text, ": ") + "\n"
}

func parseHandle(line string) (h handle, ok bool) {
	line, ok = strings.CutPrefix(line, openMark)
	kind, line, hasKind := strings.Cut(line, " ")
	id, line, hasID := strings.Cut(line, ", since ")
	since, what, _ := strings.Cut(line, ": ")
	id, inProgress := strings.CutSuffix(id, inProgressMark)
	return handle{kind, id, what, since, inProgress}, ok && hasKind && hasID
}

// noteHandles opens and closes what a call did, given the ends of its result.
func (s *history) noteHandles(c *toolCall, head, tail string) {
	result := text.Head(head, maxHandleInput)
	if end := text.Tail(tail, maxHandleInput); end != result {
		result += "\n" + end
	}
	if i := slices.IndexFunc(s.handles, c.names); i >= 0 && s.handles[i].kind == process && len(c.arguments) > 0 && slices.ContainsFunc(toolname.Words(c.tool), func(w string) bool { return processWords[w] }) { // an id says little
		c.arguments = append(slices.Clip(c.arguments), argument.Field{Key: "of", Value: prose.Truncate(s.handles[i].text, argument.MaxShort)})
		c.administers = c.administers || inBackground().MatchString(c.outcome)
	}
	s.endBackground(c, result)
	s.readReport(result, c.names)
	if !c.failed {
		if c.closes() {
			for _, h := range s.handles {
				if h.kind == "task" && doneStatus[c.status()] && c.names(h) {
					s.finished, s.closed = appendNew(s.finished, h.text), appendBounded(s.closed, h, maxHandles)
				}
			}
			s.close(c.names)
		} else if status := c.status(); status != "" {
			for i, h := range slices.Backward(s.closed) {
				if c.names(h) { // it was not done
					s.finished = slices.DeleteFunc(s.finished, func(x string) bool { return x == h.text })
					s.handles, s.closed = appendBounded(s.handles, h, maxHandles), slices.Delete(s.closed, i, i+1)
				}
			}
			for i := range s.handles {
				if c.names(s.handles[i]) {
					s.handles[i].inProgress = currentStatus[status]
				}
			}
		}
		s.readCommand(c, result)
		s.readResult(c, head, result)
	}
	c.command, c.fields = "", nil // a call with a result needs them no more
}

// endBackground tells what a call reports of processes that ended with the calls that started them; of one that failed the
// report itself is told, at its place.
func (s *history) endBackground(c *toolCall, report string) {
	status := ended().FindStringSubmatch(text.Head(report, maxLine))
	if status == nil || c.closes() {
		return
	}
	failed := c.failed || status[1] == "failed" || status[2] != "" || exitCode().MatchString(report)
	for _, h := range s.handles {
		at := slices.IndexFunc(s.calls, func(o *toolCall) bool {
			return o != c && inBackground().MatchString(o.outcome) && prose.ContainsWord(o.outcome, h.id)
		})
		if h.kind != process || !c.names(h) || at < 0 {
			continue
		}
		if c.failed = failed; failed {
			s.calls[at].administers = true
		} else {
			s.calls[at].outcome, c.administers = c.outcome, true
		}
	}
}

var (
	ended    = text.Pattern(`<status>(completed|failed)\b|(?m)^Process exited with code (?:0$|(\d+))`)
	exitCode = text.Pattern(`<exit_code>[1-9]`)
)

// readReport closes the handles that a report names and says to have ended, or else adds
// where they listen.
func (s *history) readReport(report string, names func(handle) bool) {
	if len(s.handles) == 0 {
		return
	}
	if settled().MatchString(report) {
		s.close(names)
		return
	}
	for i := range s.handles {
		if names(s.handles[i]) {
			s.handles[i].addAddress(report)
		}
	}
}

// readCommand opens and closes what the simple commands of a call did.
func (s *history) readCommand(c *toolCall, result string) {
	var started []string
	for _, cmd := range shell.Commands(strings.ReplaceAll(c.command, "-compose ", " compose ")) {
		words := strings.Fields(cmd.Text)
		if commandClosers().MatchString(cmd.Text) {
			s.closeNamed(words)
		}
		if mergedBranch().MatchString(cmd.Text) {
			if found := deletedBranch().FindStringSubmatch(result); found != nil {
				s.close(func(h handle) bool { return h.kind == branch && h.id == found[1] })
			} else {
				s.closeNewest(branch)
			}
		}
		if killers().MatchString(cmd.Text) {
			if strings.ContainsAny(cmd.Text, "$%") || cmd.Text == "wait" {
				started = nil
			}
			s.closeKilled(cmd.Text, c.command)
		}
		if cmd.Background && !endsSoon().MatchString(cmd.Text) {
			started = append(started, cmd.Text)
		}
		named := false
		for _, o := range commandOpeners {
			switch found := o.command().FindStringSubmatch(cmd.Text); {
			case found == nil:
			case o.result == nil:
				s.open(c, o.kind, found[1], publishedPorts(cmd.Text))
				named = o.kind == container
			default:
				if found = o.result().FindStringSubmatch(result); found != nil && named {
					h := &s.handles[len(s.handles)-1]
					h.text = strings.TrimPrefix(h.text+", "+containerID+found[1][:minContainerID], ", ")
				} else if found != nil {
					s.open(c, o.kind, found[1], strings.TrimPrefix(found[0], found[1])+publishedPorts(cmd.Text))
				}
			}
		}
	}
	if len(started) == 0 {
		return
	}
	pids := pid().FindAllStringSubmatch(result, len(started)+1)
	for i, cmd := range started {
		id := ""
		if len(pids) == len(started) {
			if id = pids[i][1]; id == "" && strings.Contains(c.command, "$!") {
				id = pids[i][2]
			}
		}
		s.open(c, process, cmp.Or(id, unknownID), cmd)
		s.handles[len(s.handles)-1].addAddress(result)
	}
}

// publishedPorts returns the ports that a command publishes: "port 8080, port 8443".
func publishedPorts(command string) string {
	var ports []string
	for _, found := range published().FindAllStringSubmatch(command, -1) {
		ports = append(ports, "port "+found[1])
	}
	return strings.Join(ports, ", ")
}

// closeNamed closes the handles of which a word is the id. Without a number, a command
// closes the pull request of the branch, which is the newest.
func (s *history) closeNamed(words []string) {
	s.close(func(h handle) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			return strings.TrimLeft(w, "#") == h.id || strings.HasSuffix(w, "/"+h.id) || h.kind == container && h.hasID(w)
		})
	})
	if slices.Contains(words, "pr") && !slices.ContainsFunc(words, func(w string) bool { return strings.ContainsFunc(w, unicode.IsDigit) }) {
		s.closeNewest(pullRequest)
	}
}

// closeNewest closes the newest handle of a kind.
func (s *history) closeNewest(kind string) {
	for i, h := range slices.Backward(s.handles) {
		if h.kind == kind {
			s.handles = slices.Delete(s.handles, i, i+1)
			return
		}
	}
}

// hasID reports whether a word is the id of a container, whole or its beginning.
func (h handle) hasID(w string) bool {
	id := h.id
	if _, known, ok := strings.Cut(h.text, containerID); ok {
		id, w = known[:min(len(known), minContainerID)], w[:min(len(w), minContainerID)]
	}
	return len(w) >= minHandleID && len(id) >= minContainerID && strings.HasPrefix(id, w) && charclass.Hex.Forward(w, 0) == len(w)
}

// closeKilled closes the processes of which a command that kills has the id or a word.
func (s *history) closeKilled(killer, line string) {
	if strings.HasPrefix(killer, "xargs") || strings.HasSuffix(killer, "$") {
		killer = line
	}
	words := slices.Collect(prose.Words(killer))
	s.close(func(h handle) bool {
		return h.kind == tunnel && slices.Contains(words, "ssh") || h.kind == process && slices.ContainsFunc(words, func(w string) bool {
			return w == h.id || len(w) > 2 && !killers().MatchString(w) && prose.ContainsWord(h.text, w)
		})
	})
}

// readResult opens what a result says to run on, and what a tool such as create_issue or
// TaskCreate made.
func (s *history) readResult(c *toolCall, whole, result string) {
	if len(c.paths) > 0 && !c.runsToo {
		return
	}
	for _, o := range resultOpeners {
		if found := o.result().FindStringSubmatch(result); found != nil && !slices.ContainsFunc(s.handles, func(h handle) bool { return h.id == found[1] && c.names(h) }) {
			s.open(c, o.kind, found[1], cmp.Or(c.command, c.title()))
		}
	}
	words := toolname.Words(c.tool)
	verb := slices.IndexFunc(words, func(w string) bool { return openVerbs[w] })
	if c.command != "" || verb < 0 || slices.ContainsFunc(words, toolname.IsLookVerb) {
		return
	}
	for _, i := range []int{verb + 1, verb + 2, verb - 1} { // create_issue, start_new_session, TaskCreate
		if i >= 0 && i < len(words) && handleNouns[words[i]] {
			if id := resultID(whole, words[i]); id != "" {
				s.open(c, words[i], id, c.title())
				c.administers = words[i] == "task"
				s.handles[len(s.handles)-1].addAddress(result)
			}
			return
		}
	}
}

// resultID returns the id of a thing in a result, "" for none.
func resultID(result, noun string) string {
	if len(result) > argument.MaxJSON {
		return ""
	}
	fs, ok := argument.Parse(result)
	if !ok {
		if found := numbered().FindStringSubmatch(text.Head(result, maxHandleInput)); found != nil {
			return cmp.Or(found[1:]...)
		}
		return ""
	}
	for _, key := range append([]string{noun + "id"}, idKeys...) {
		for _, f := range fs {
			if f.Object == 1 && strings.ReplaceAll(strings.ToLower(f.Key), "_", "") == key {
				return f.Value
			}
		}
	}
	return ""
}

// closes reports whether a call by its name or by a status closes what it names.
func (c *toolCall) closes() bool {
	return slices.ContainsFunc(toolname.Words(c.tool), func(w string) bool { return closeVerbs[w] }) || finalStatus[c.status()]
}

// status returns the status that a call sets, as one word in lower case, "" for none.
func (c *toolCall) status() string {
	return strings.ReplaceAll(strings.ToLower(argument.Lookup(c.fields, "status", "state")), " ", "_")
}

// names reports whether an argument of a call is the id of a handle. A short id needs the
// kind in the name of the tool or of the argument.
func (c *toolCall) names(h handle) bool {
	return slices.ContainsFunc(c.fields, func(f argument.Field) bool {
		return f.Value == h.id && (len(h.id) >= minHandleID || strings.Contains(strings.ToLower(c.tool+" "+f.Key), strings.ToLower(h.kind)))
	})
}

// title returns what the arguments of a call say that it is for.
func (c *toolCall) title() string {
	return argument.Lookup(c.fields, "title", "subject", "description", "name", "prompt", "message", "command")
}

// open records a handle as the newest one.
func (s *history) open(c *toolCall, kind, id, what string) {
	if id == "" || len(id) > maxHandleID || strings.ContainsFunc(id, func(r rune) bool { return unicode.IsSpace(r) || prose.IsLineBreak(r) }) {
		id = unknownID
	}
	h := handle{kind: kind, id: strings.Clone(id), text: prose.Excerpt(what, maxHandleText), since: fmt.Sprintf("message %d", s.messages)}
	if !c.at.IsZero() {
		h.since = c.at.Format("2006-01-02 15:04")
	}
	s.closed = slices.DeleteFunc(s.closed, func(o handle) bool { return o.kind == kind && o.id == h.id })
	s.close(func(o handle) bool { return o.kind == kind && o.id == h.id && (id != unknownID || o.text == h.text) })
	s.handles = appendBounded(s.handles, h, maxHandles)
}

func (s *history) close(match func(handle) bool) { s.handles = slices.DeleteFunc(s.handles, match) }

// addAddress adds where a server listens, as its output says.
func (h *handle) addAddress(output string) {
	if found := address().FindStringSubmatch(output); found != nil && !strings.Contains(h.text, found[1]) {
		h.text = prose.Truncate(h.text, maxHandleText) + ", at " + strings.Clone(found[1])
	}
}

// addHandles adds what is open, tasks with the remaining work.
func (s *history) addHandles(b *itemList) {
	for i, h := range s.handles {
		sec := sectionState
		if h.kind == "task" {
			sec = sectionRemaining
		}
		age := len(s.handles) - 1 - i
		if h.kind == "task" { // of those made together, the first comes next
			first, last := i, i
			for first > 0 && s.handles[first-1].since == h.since {
				first--
			}
			for last+1 < len(s.handles) && s.handles[last+1].since == h.since {
				last++
			}
			age += (i - first) - (last - i)
		}
		worth := worthOpen * decay(age, 16)
		if h.inProgress {
			worth += 2 * worthOpen
		}
		it := b.add(sec, h.String(), 0)
		if it.tier = tierOpen; sec == sectionState { // it is under way
			it.share = sectionInProgress
		}
		b.weigh(worth)
	}
}
