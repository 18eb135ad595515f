package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// task is an entry of a list of tasks that a tool keeps.
type task struct{ id, title, state string }

// tasks holds the newest list of tasks, whichever tool keeps it: calls with a list of objects that have a title and a state,
// or calls that make one task or set its state.
type tasks struct {
	list    []task
	message int
}

const maxTasks = 200

// titleKeys and stateKeys are the keys of the parts of a task.
var (
	titleKeys = text.Set(`content title subject step task name text description todo activeform`)
	stateKeys = text.Set(`status state`)
	taskKeys  = []string{"taskid", "task_id", "id", "todo_id"}
)

// add reads a call, and reports whether it is one on tasks.
func (t *tasks) add(fs []field, message int) bool {
	var list []task
	for i := range fs {
		f := &fs[i]
		if f.row == 0 {
			continue
		}
		if f.row > len(list) {
			list = append(list, task{})
		}
		x := &list[len(list)-1]
		switch key := strings.ToLower(f.key); {
		case stateKeys[key] && x.state == "":
			x.state = strings.Clone(line(f.value, 30))
		case titleKeys[key] && x.title == "":
			x.title = strings.Clone(line(f.value, 200))
		}
	}
	if len(list) > 0 && !slices.ContainsFunc(list, func(x task) bool { return x.state == "" || x.title == "" }) {
		t.list, t.message = list[:min(len(list), maxTasks)], message
		return true
	}
	id, state := lookup(fs, taskKeys...), lookup(fs, "status", "state")
	i := slices.IndexFunc(t.list, func(x task) bool { return id != "" && x.id == id })
	if i >= 0 && state != "" {
		t.list[i].state, t.message = strings.Clone(line(state, 30)), message
	}
	return i >= 0
}

// open reports whether a task of the list is not done.
func (t *tasks) open() bool {
	return slices.ContainsFunc(t.list, func(x task) bool { return !finished[strings.ToLower(x.state)] })
}

// made reads the result of a call that may have made one task: a title in its arguments, and an id in its result.
func (t *tasks) made(c *call, result string) {
	if !strings.Contains(strings.ToLower(c.tool), "task") && !strings.Contains(strings.ToLower(c.tool), "todo") || len(result) > 400 {
		return
	}
	title := ""
	for _, f := range c.arguments {
		if title == "" && titleKeys[strings.ToLower(f.key)] {
			title = f.value
		}
	}
	_, id, ok := strings.Cut(result, "#")
	if id = id[:len(id)-len(strings.TrimLeft(id, "0123456789"))]; !ok || id == "" || title == "" {
		return
	}
	t.list, t.message = bounded(t.list, task{strings.Clone(id), title, "pending"}, maxTasks), c.message
	c.ofTasks = true
}
