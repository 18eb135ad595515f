package chat

// Turn is a user message and what follows it up to the next: the entries with
// index Start to End-1 of the list it was made from.
type Turn struct{ Start, End int }

// Turns splits metadata in view order into turns. Turn 0 is what precedes the
// first user message and is always there, if only empty; turn n starts with the
// nth user message. A summary in the role of the user starts no turn.
func Turns(ms []Meta) []Turn {
	turns := []Turn{{}}
	for i, m := range ms {
		if m.Role == RoleUser && m.Kind != KindSummary {
			turns = append(turns, Turn{Start: i})
		}
		turns[len(turns)-1].End = i + 1
	}
	return turns
}
