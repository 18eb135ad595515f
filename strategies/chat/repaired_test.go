package chat

// Repaired returns a history without violations: ms with the repair of its view applied, or
// ms itself if it needs none.
func Repaired(ms []Message) []Message {
	view := Describe(ms)
	steps := Repair(view)
	if len(steps) == 0 {
		return ms
	}
	answered := func(d RepairStep) (ids []string) {
		for _, q := range d.Results {
			ids = append(ids, ms[q-1].ToolCallID)
		}
		return ids
	}
	step := make(map[int]RepairStep, len(steps))
	var resolved []RepairStep
	for _, d := range steps {
		if d, ok := d.Resolve(&ms[d.Index], answered(d)); ok {
			step[d.Index], resolved = d, append(resolved, d)
		}
	}
	_, from := applyRepairs(view, resolved)
	out := make([]Message, len(from))
	for i, k := range from {
		if d, ok := step[k]; ok {
			out[i] = d.Apply(ms[k], answered(d))
		} else {
			out[i] = ms[k]
		}
	}
	return Repaired(out)
}
