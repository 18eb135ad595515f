package config

import "slices"

// deprecated maps former keys of renamed settings to the present ones. Files, variables and
// flags may still use a former key, which adds a notice. Keys inside the elements of a list
// cannot be renamed in this way.
func deprecated() map[string]string {
	return map[string]string{}
}

// current returns the present key of a setting, and adds a notice if key is a former one.
func (d *decoder) current(o Origin, key string) string {
	now, renamed := d.deprecated[key]
	if !renamed {
		return key
	}
	d.notices = append(d.notices, o.String()+": "+key+" is deprecated, use "+now)
	return now
}

// former returns the former keys of a setting, sorted.
func (d *decoder) former(key string) []string {
	var out []string
	for old, now := range d.deprecated {
		if now == key {
			out = append(out, old)
		}
	}
	slices.Sort(out)
	return out
}

// Notices returns one line for each use of a former key.
func (c Config) Notices() []string { return c.notices }
