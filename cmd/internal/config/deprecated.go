package config

import "slices"

// deprecated maps the former key of each setting that was renamed to its key now. A
// former key is still read, in files, in the environment and from flags, with a notice.
// Keys inside the elements of a list cannot be renamed in this way.
func deprecated() map[string]string {
	return map[string]string{}
}

// current returns the key that a setting has now, and notes it where o uses a former one.
func (d *decoder) current(o Origin, key string) string {
	now, renamed := d.deprecated[key]
	if !renamed {
		return key
	}
	d.notices = append(d.notices, o.String()+": "+key+" is deprecated, use "+now)
	return now
}

// former returns the keys that a setting had before, in order.
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

// Notices returns a line for each former key that a source uses.
func (c Config) Notices() []string { return c.notices }
