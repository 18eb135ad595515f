package backlog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// coding is a session of a coding agent.
type coding struct {
	*writer
	topic string
}

func newCoding(w *writer, topic string) *coding {
	w.fix("service", "~service~")
	c := &coding{w, topic}
	c.focus()
	return c
}

// focus chooses the file and the test that a task is about.
func (c *coding) focus() {
	c.subject = [scoped]string{}
	c.reset()
	c.fill("~noun~~verb~~adjective~")
	c.subject = c.scope
	if c.topic == "go" {
		c.fix("file", "internal/~noun~/~verb~.go")
		c.fix("test", "Test~Verb~~Noun~")
		return
	}
	c.fix("file", "~service~/~noun~s/~verb~.py")
	c.fix("test", "test_~verb~_~noun~")
}

func (c *coding) system() string { return c.line("system_coding") }

// task is what the user wants, the steps it takes, and the report.
func (c *coding) task() {
	if c.r.Float64() < 0.5 {
		c.focus()
	}
	task, report, _ := strings.Cut(pick(c.r, c.words["task"]...), "\n>>\n")
	c.scope = c.subject
	c.user(c.fill(task))
	for range 2 + c.r.IntN(8) {
		n, say, thought := 1, "", ""
		if c.r.Float64() < 0.2 {
			n = 2 + c.r.IntN(3)
		}
		if c.r.Float64() < 0.4 {
			say = c.line("say")
		}
		if c.reasoning && c.r.Float64() < 0.6 {
			thought = c.until(c.r.IntN(700), "thought", "\n")
		}
		c.batch(n, say, thought)
	}
	c.scope = c.subject
	c.assistant(c.fill(report))
}

// step is one tool call with its result.
func (c *coding) step() (chat.ToolCall, string) {
	path := c.line("source_" + c.topic)
	if c.r.Float64() < 0.5 {
		path = c.facts["file"]
	}
	if c.r.Float64() < 0.05 {
		return c.toolCall("shell", object("command", c.line("shellcommand"))), c.line("panic_" + c.topic)
	}
	switch x := c.r.Float64(); {
	case x < 0.34:
		return c.toolCall("read_file", object("path", path)), c.file(c.size(2400))
	case x < 0.50:
		old := c.snippet()
		return c.toolCall("edit_file", object("path", path, "old", old, "new", old+"\n"+c.line("insert_"+c.topic))),
			c.fill("edited, ~small~ lines changed")
	case x < 0.70:
		return c.toolCall("run_tests", object("package", path[:strings.LastIndexByte(path, '/')])), c.tests(c.size(900))
	case x < 0.84:
		return c.toolCall("grep", object("pattern", c.fill("~verb~~Noun~"))), c.until(c.size(500), "hit_"+c.topic, "\n")
	case x < 0.90:
		return c.toolCall("list_files", object("path", ".")), c.list(c.size(350))
	}
	return c.toolCall("shell", object("command", c.line("shellcommand"))), sorted(c.until(c.size(1200), "log", "\n"))
}

// file is a source file with line numbers.
func (c *coding) file(size int) string {
	text := c.until(size, "code_"+c.topic, "\n\n")
	var b strings.Builder
	n := 1 + c.r.IntN(40)
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(&b, "%5d\t%s\n", n, line)
		n++
	}
	return b.String()
}

// list is a listing of files.
func (c *coding) list(size int) string {
	return sorted(c.until(size*3/4, "source_"+c.topic, "\n") + "\n" + c.until(size/4, "other", "\n"))
}

// sorted are the lines of a text in order, each once.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// snippet is a few lines of code.
func (c *coding) snippet() string {
	lines := strings.Split(c.line("code_"+c.topic), "\n")
	from := c.r.IntN(max(1, len(lines)-6))
	return strings.Join(lines[from:min(len(lines), from+2+c.r.IntN(5))], "\n")
}

func (c *coding) tests(size int) string {
	name := "gotest"
	if c.topic == "python" {
		name = "pytest"
	}
	out := c.until(size, name, "\n")
	if c.r.Float64() < 0.15 {
		out += "\n" + c.line("panic_"+c.topic)
	}
	return out
}
