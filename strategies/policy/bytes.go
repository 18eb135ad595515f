package policy

import (
	"errors"
	"regexp"
	"strconv"
)

// Bytes is a size on a disk or in memory. Its text has a unit, as in 200GB or 1.5TiB.
type Bytes int64

// byteUnits are those of Bytes, each with its multiple.
var byteUnits = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}

var bytesText = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([kMGT]i?B)$`)

// ParseBytes reads a size with its unit, or 0.
func ParseBytes(text string) (Bytes, error) {
	if text == "0" {
		return 0, nil
	}
	if m := bytesText.FindStringSubmatch(text); m != nil {
		for _, u := range byteUnits {
			if n, err := strconv.ParseFloat(m[1], 64); u.name == m[2] && err == nil {
				return Bytes(n * float64(u.bytes)), nil
			}
		}
	}
	return 0, errors.New("want a size with its unit (MB, GB, TB, MiB, GiB or TiB), such as 200GB, or 0")
}

// String returns the size in the largest unit that makes it a whole number.
func (b Bytes) String() string {
	for _, u := range byteUnits {
		if b != 0 && int64(b)%u.bytes == 0 {
			return strconv.FormatInt(int64(b)/u.bytes, 10) + u.name
		}
	}
	return "0"
}
