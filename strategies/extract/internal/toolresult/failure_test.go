package toolresult

import (
	"slices"
	"strings"
	"testing"
)

func TestFault(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                   "",
		"ok  pkg 0.2s":                       "",
		"error: no such file":                "error: no such file",
		"Exit code 0\ndone":                  "",
		"Exit code 2":                        "Exit code 2",
		"Exit code 1\nbuilding\nError: x.go": "Exit code 1: Error: x.go",
		"Exit code 1\nbuilding\nno way":      "Exit code 1: no way",
		"Exit code 1\nno way\nhint: ask\nhint: so":    "Exit code 1: no way",
		"Exit code 1\nCONFLICT (content): a\nhint: b": "Exit code 1: CONFLICT (content): a",
		"line\nline\nFAIL\tpkg 0.1s\n":                "FAIL\tpkg 0.1s",
		`{"error": "no seat"}`:                        `{"error": "no seat"}`,
		`{"error": null, "seat": 1}`:                  "",
		"<error>gone</error>":                         "<error>gone</error>",
		"an error is described\nin this text":         "",
		"a\nerror: in the middle\nb\nc\nd":            "",
		"FAIL: 0\nall is well":                        "",
		strings.Repeat("\n", 3000) + "Exit code 1":    "Exit code 1",
	} {
		if got := FailureLine(in, in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTheHookOfAFailureIsTold(t *testing.T) {
	t.Parallel()
	const output = "black....Passed\nflake8....Failed\n- hook id: flake8\n- exit code: 1\n\nlamp.py:8:3: F821 undefined name 'Lamp'\nmypy....Failed\n- hook id: mypy\n- exit code: 2\n"
	got, _ := FailureLines(output, output)
	if want := []string{"flake8: exit code: 1", "lamp.py:8:3: F821 undefined name 'Lamp'", "mypy: exit code: 2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
