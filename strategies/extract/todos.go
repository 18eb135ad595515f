package extract

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// parseTodos returns the tasks of a list of objects with a status and a text: the open ones with
// their status, and those that are finished. ok reports whether the arguments contain such a list.
func parseTodos(fs []argument.Field) (open, finished []string, ok bool) {
	for i := 0; i < len(fs); {
		object, status, task := fs[i].Object, "", ""
		for ; i < len(fs) && fs[i].Object == object; i++ {
			switch strings.ToLower(fs[i].Key) {
			case "status", "state":
				status = strings.ToLower(fs[i].Value)
			case "content", "title", "task", "step", "text", "description", "subject":
				task = cmp.Or(task, fs[i].Value)
			}
		}
		if status == "" || task == "" {
			continue
		}
		ok, task = true, prose.Truncate(prose.OneLine(task), maxLine)
		switch {
		case !finalStatus[status] && len(open) < maxNotes:
			open = append(open, task+" ("+text.Head(prose.OneLine(status), 20)+")")
		case doneStatus[status]:
			finished = append(finished, task)
		}
	}
	return open, finished, ok
}

// addTodos adds the open tasks. The others do not stand without the one in progress.
func (s *history) addTodos(b *itemList) {
	var todos []*item
	var progress *item
	for _, x := range s.todos {
		x = s.dated(x, s.todosAt)
		if age := s.messages - s.todosAt; age > freshTodos { // some may be done by now
			x += fmt.Sprintf(", as listed %d messages before the end", age)
		}
		it := b.add(sectionRemaining, formatEntry(x), worthTodo)
		if it.tier = tierState; strings.Contains(x, "(in progress)") || strings.Contains(x, "(in_progress)") {
			it.value, progress = worthProgress, cmp.Or(progress, it)
		}
		todos = append(todos, it)
	}
	for _, it := range todos {
		if it != progress {
			it.follows = progress
		}
	}
}
