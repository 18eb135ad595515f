package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// maxRetention bounds the times of Retention: ten years.
const maxRetention = 3650 * day

// Retention defines how long the content of messages that are out of the view stays as it is. A
// child session has that of the first of its parents.
type Retention struct {
	// ArchiveAfter is the time out of the view after which content is compressed; 0 for never.
	// It stays part of the full history, and comes back when it is needed.
	ArchiveAfter time.Duration `yaml:"archive_after" json:"archive_after"`
	// PurgeAfter is the time in the archive after which content is deleted; 0 for never.
	PurgeAfter time.Duration `yaml:"purge_after" json:"purge_after"`
}

func (p Policy) validateRetention(fs *FieldErrors) {
	r := p.Retention
	fs.Prefix = "retention."
	defer func() { fs.Prefix = "" }()
	ok := func(d time.Duration) bool { return d == 0 || d >= day && d <= maxRetention }
	fs.Check(ok(r.ArchiveAfter), "archive_after", r.ArchiveAfter, "0s, or 1d to 3650d")
	fs.Check(ok(r.PurgeAfter), "purge_after", r.PurgeAfter, "0s, or 1d to 3650d")
	fs.Check(r.PurgeAfter == 0 || r.ArchiveAfter > 0, "purge_after", r.PurgeAfter, "archive_after, too: only what was archived is purged")
}

// explain describes the times that are set, one line each.
func (r Retention) explain() (lines []string) {
	if r.ArchiveAfter > 0 {
		lines = append(lines, fmt.Sprintf("retention: words are archived %s after they left the view", Days(r.ArchiveAfter)))
	}
	if r.PurgeAfter > 0 {
		lines = append(lines, fmt.Sprintf("retention: archived words are gone for good %s later", Days(r.PurgeAfter)))
	}
	return lines
}

var daysPrefix = regexp.MustCompile(`^([0-9]{1,5})d(.*)$`)

// ParseDuration is that of package time, which has no days: 30d, 1d12h.
func ParseDuration(s string) (time.Duration, error) {
	m := daysPrefix.FindStringSubmatch(s)
	if m == nil {
		return time.ParseDuration(s)
	}
	n, err := strconv.Atoi(m[1])
	rest := time.Duration(0)
	if err == nil && m[2] != "" {
		rest, err = time.ParseDuration(m[2])
	}
	return time.Duration(n)*day + rest, err
}

// Days returns a duration as ParseDuration reads it, in days if it is some.
func Days(d time.Duration) string {
	if d > 0 && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return Text(d)
}

// MarshalJSON writes durations as text ("720h0m0s").
func (r Retention) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"archive_after": r.ArchiveAfter.String(), "purge_after": r.PurgeAfter.String()})
}

// UnmarshalJSON implements json.Unmarshaler as that of Policy does.
func (r *Retention) UnmarshalJSON(raw []byte) error {
	return readStrictly(raw, &struct {
		ArchiveAfter duration `json:"archive_after"`
		PurgeAfter   duration `json:"purge_after"`
	}{duration{&r.ArchiveAfter}, duration{&r.PurgeAfter}})
}
