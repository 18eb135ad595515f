package toolresult

import (
	"strings"
	"testing"
)

func TestFault(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                         "",
		"ok  pkg 0.2s":                             "",
		"error: no such file":                      "error: no such file",
		"Exit code 0\ndone":                        "",
		"Exit code 2":                              "Exit code 2",
		"Exit code 1\nbuilding\nError: x.go":       "Exit code 1: Error: x.go",
		"Exit code 1\nbuilding\nno way":            "Exit code 1: no way",
		"line\nline\nFAIL\tpkg 0.1s\n":             "FAIL\tpkg 0.1s",
		`{"error": "no seat"}`:                     `{"error": "no seat"}`,
		`{"error": null, "seat": 1}`:               "",
		"<error>gone</error>":                      "<error>gone</error>",
		"an error is described\nin this text":      "",
		"a\nerror: in the middle\nb\nc\nd":         "",
		"FAIL: 0\nall is well":                     "",
		strings.Repeat("\n", 3000) + "Exit code 1": "Exit code 1",
	} {
		if got := FailureLine(in, in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
