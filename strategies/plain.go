package strategies

import "github.com/sessionstore/compactor/strategies/chat"

// faults are those of chat.Check, which most views need not be put through.
func (d *Draft) faults() []chat.Fault {
	if plain(d.Transcript().Entries) {
		return nil
	}
	return chat.Check(d.viewMetas())
}

// plain reports that the view of the entries is one that chat.Check finds nothing
// wrong with: every call is answered at once and in full, but for the last one,
// and what was written stands nowhere near a group's inside or the leading system
// messages. That some other views are fine too is for Check to say.
func plain(entries []Entry) bool {
	left := 0 // results that the last call still waits for
	var results, written, spoken, thinking bool
	for i := range entries {
		e := &entries[i]
		if !e.Included {
			continue
		}
		if e.Role == chat.RoleTool {
			if left == 0 || !e.Has(chat.Paired) {
				return false
			}
			left--
			results, thinking = true, false
			continue
		}
		source, reasoning := isSource(e.Kind), e.ReasoningOnly()
		switch {
		case left > 0 && (!reasoning || results),
			!source && thinking,
			e.Role == chat.RoleSystem && written && !spoken:
			return false
		case e.Role == chat.RoleAssistant && e.Calls > 0:
			left, results = e.Calls, false
		}
		thinking = reasoning
		written = written || !source
		spoken = spoken || source && e.Role != chat.RoleSystem
	}
	return true
}
