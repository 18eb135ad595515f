package chat

// Repaired returns a history without violations: ms with the repair of its view applied, or
// ms itself if it needs none.
func Repaired(ms []Message) []Message {
	view := Describe(ms)
	steps := Repair(view)
	if len(steps) == 0 {
		return ms
	}
	ids := Answered(steps, func(q Seq) *Message { return &ms[q-1] })
	answered := make(map[int][]string, len(steps))
	step := make(map[int]RepairStep, len(steps))
	var resolved []RepairStep
	for i, d := range steps {
		answered[d.Index] = ids[i]
		if d, ok := d.Resolve(&ms[d.Index], ids[i]); ok {
			step[d.Index], resolved = d, append(resolved, d)
		}
	}
	_, from := applyRepairs(view, resolved)
	out := make([]Message, len(from))
	for i, k := range from {
		if d, ok := step[k]; ok {
			out[i] = d.Apply(ms[k], answered[k])
		} else {
			out[i] = ms[k]
		}
	}
	return Repaired(out)
}
