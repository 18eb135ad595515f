package chat

// Repaired returns a history without violations: ms with the repair of its view applied, or
// ms itself if it needs none.
func Repaired(ms []Message) []Message {
	view := Describe(ms)
	steps := Repair(view)
	if len(steps) == 0 {
		return ms
	}
	step := make(map[int]RepairStep, len(steps))
	for _, d := range steps {
		step[d.Index] = d
	}
	_, from := applyRepairs(view, steps)
	out := make([]Message, len(from))
	for i, k := range from {
		d, ok := step[k]
		if !ok {
			out[i] = ms[k]
			continue
		}
		var answered []string
		for _, q := range d.Results {
			answered = append(answered, ms[q-1].ToolCallID)
		}
		out[i] = d.Apply(ms[k], answered)
	}
	return out
}
