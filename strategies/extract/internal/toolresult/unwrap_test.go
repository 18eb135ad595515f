package toolresult

import (
	"testing"
)

// What harnesses and servers of MCP put around an output is no part of it.
func TestWrappedOutputs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"output":"[1] 40122\n","metadata":{"exit_code":0,"duration_seconds":0.1}}`:                 "[1] 40122\n",
		`{"output":"no lamp\n","metadata":{"exit_code":3,"duration_seconds":0.1}}`:                   "exit code 3\nno lamp\n",
		`{"stdout":"four lamps","stderr":"one is dim","exitCode":0}`:                                 "four lamps\none is dim",
		`{"content":[{"type":"text","text":"four"},{"type":"text","text":"lamps"}],"isError":false}`: "four\nlamps",
		`{"output":"four lamps","room":"hall"}`:                                                      `{"output":"four lamps","room":"hall"}`,
		`{"output":["four lamps"]}`:                                                                  `{"output":["four lamps"]}`,
		`{"output":"four lamps"`:                                                                     `{"output":"four lamps"`,
		"Wiring (1/2)\rWiring (2/2)\rfour lamps\r\n 50%\r100%\ndone":                                 "four lamps\r\n100%\ndone",
		"hall\rkitchen\n": "hall\rkitchen\n",
		"four lamps\n[Current working directory: /hall]\n[Python interpreter: /usr/bin/python]\n[Command finished with exit code 0]": "four lamps",
		"no lamp\n[The command completed with exit code 2.]\n[Current working directory: /hall]":                                     "exit code 2\nno lamp",
	} {
		if got := Unwrap(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
