package extract

import (
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolresult"
)

// A failed build, test or program is recognised by its own lines, and what survives a cut is the same.
func TestAFailureNeedsNoExitCode(t *testing.T) {
	t.Parallel()
	for command, output := range map[string]string{
		"make lamp":                "cc -c lamp.c\nlamp.c:7:2: error: expected ';' before 'room'\n   7 |   room\n     |  ^\n1 error generated.",
		"make -C hall":             "cc -c lamp.c\nmake[1]: *** [lamp.o] Error 1",
		"go build ./hall":          "# house/hall\nhall/lamp.go:9:2: undefined: Room\nhall/lamp.go:12:4: not enough arguments in call to turn",
		"go vet ./hall":            "# house/hall\nhall/lamp.go:9:2: room redeclared in this block",
		"cargo run":                "   Compiling house\nthread 'main' panicked at src/main.rs:4:9:\nthe lamp is dark\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
		"npx tsc -p hall":          "hall/lamp.ts(3,14): error TS2322: Type 'Room' is not assignable to type 'Lamp'.",
		"python lamp.py":           "Traceback (most recent call last):\n  File \"lamp.py\", line 3\nKeyError: 'room'",
		"pytest hall":              "E       assert 'dark' == 'lit'\nhall/test_lamp.py:4: AssertionError",
		"npm run lamp":             "npm ERR! code ELIFECYCLE\nnpm ERR! errno 2",
		"mvn -q package":           "[INFO] BUILD FAILURE\n[INFO] Total time: 3 s\n[INFO] Finished",
		"./gradlew assemble":       "FAILURE: Build failed with an exception.\n* What went wrong:\nno lamp\n* Try:\n> Run with --stacktrace",
		"./lamp --on":              "Segmentation fault (core dumped)",
		"./lamp --off":             "Killed",
		"lampctl on":               "zsh: command not found: lampctl",
		"./hall.sh":                "./hall.sh: line 3: lampctl: command not found",
		"./lamp --slow":            "Command timed out after 90s",
		"git push origin hall":     "To github.com:o/house\n ! [rejected]        hall -> hall (fetch first)\nhint: Updates were rejected\nhint: fetch first\nhint: see the note",
		"git merge hall":           "Auto-merging lamp.go\nCONFLICT (content): Merge conflict in lamp.go\nThe rest was merged.\nCommit the result.",
		"node lamp.js":             "node:internal\nTypeError: room is not a function\n    at lamp.js:3:1\n\nNode.js v22.1.0",
		"php lamp.php":             "PHP Fatal error:  Uncaught Error in lamp.php:3",
		"./lamp && echo lit; true": "dial tcp 10.0.0.7:80: connect: connection refused",
	} {
		text := digestOf(Options{}, user("Light the lamp of the hall, please."), calls("", "1", "Bash", "command", command), result("1", output),
			calls("", "2", "Bash", "command", "ls hall"), result("2", "lamp.go")).Text(600)
		if !strings.Contains(text, "## Blocked\n") {
			t.Errorf("%s: no failure in\n%s", command, text)
		}
		if len(toolresult.Failures(output, 3)) == 0 {
			t.Errorf("%s: nothing survives a cut", command)
		}
	}
}

// What is only shown or found did not fail, and what was reported before a success is over.
func TestWhatIsShownIsNoFailure(t *testing.T) {
	t.Parallel()
	for command, output := range map[string]string{
		"cat hall/lamp_test.go":             "func TestLamp(t *testing.T) {\nKeyError: 'room'\nCONFLICT (content): never",
		"grep -rn error hall":               "hall/lamp.go:9:2: error is expected",
		"go build ./x && grep -n error a.c": "a.c:9: error is expected",
		"docker logs hall":                  "TypeError: the lamp is dark",
		"git log -3":                        "CONFLICT (content): Merge conflict in lamp.go",
		"npm run lamp":                      "TypeError: retried\nbuilt in 3.1s",
		"npx jest hall":                     "● Console\nTests: 7 passed, 7 total",
	} {
		d := digestOf(Options{}, user("Light the lamp of the hall, please."), calls("", "1", "Bash", "command", command), result("1", output))
		if d.history.calls[0].failed {
			t.Errorf("%s: failed by %q", command, d.history.calls[0].outcome)
		}
	}
}

// A failed test is over when an edit, all tests and a commit followed it, in that order; not by part of the tests, and
// not by what a linter says.
func TestATestFailedBeforeACommit(t *testing.T) {
	t.Parallel()
	const failed = "hall: it is dark"
	edit := []*chat.Message{calls("", "2", "Edit", "file_path", "/src/hall.go", "old_string", "a", "new_string", "b"), result("2", "ok")}
	run := func(command, output string) []*chat.Message {
		return []*chat.Message{calls("", "3", "Bash", "command", command), result("3", output)}
	}
	commit := run(`git commit -am "Light the hall"`, "[main 1a2b3c4] Light the hall")
	all := run("mise run lint && mise run test:ci", "ok  \thouse\t0.01s")
	for name, tt := range map[string]struct {
		then [][]*chat.Message
		open bool
	}{
		"edit, tests, commit":       {[][]*chat.Message{edit, all, commit}, false},
		"no commit":                 {[][]*chat.Message{edit, all}, true},
		"no edit":                   {[][]*chat.Message{all, commit}, true},
		"tests before the edit":     {[][]*chat.Message{all, edit, commit}, true},
		"a commit before the tests": {[][]*chat.Message{edit, commit, all}, true},
		"a linter":                  {[][]*chat.Message{edit, run("mise run lint", "0 issues."), commit}, true},
		"some of the tests":         {[][]*chat.Message{edit, run("mise run test:ci -run Cellar", "ok  \thouse\t0.01s"), commit}, true},
		"tests that fail":           {[][]*chat.Message{edit, run("mise run test:ci", "--- FAIL: TestCellar (0.00s)\nFAIL"), commit}, true},
	} {
		ms := []*chat.Message{user("Light the lamp of the hall, please."), calls("", "1", "Bash", "command", "go test -run 'TestHall|TestCellar' ./house"), result("1", "--- FAIL: TestHall (0.00s)\n    hall_test.go:4: "+failed+"\nFAIL")}
		text := digestOf(Options{}, slices.Concat(append([][]*chat.Message{ms}, tt.then...)...)...).Text(900)
		if strings.Contains(text, "go test -run 'TestHall|TestCellar' ./house") != tt.open {
			t.Errorf("%s: open is %t in\n%s", name, !tt.open, text)
		}
	}
}

// A merge that a commit concluded is no failure, and how a program is used says nothing later.
func TestAMergeThatWasConcluded(t *testing.T) {
	t.Parallel()
	merge := []*chat.Message{
		user("Merge the lamps of the cellar, please."),
		calls("", "1", "Bash", "command", "git fetch origin lamps && git merge origin/lamps"), result("1", "Exit code 1\nCONFLICT (content): Merge conflict in lamp.go\nAutomatic merge failed; fix conflicts and then commit the result."),
		calls("", "2", "Bash", "command", "go run ./cmd/lamp --help"), result("2", "Use lamp [command] for more of it."),
	}
	next := []*chat.Message{calls("", "3", "Read", "file_path", "lamp.go"), result("3", "package lamp")}
	wantIn(t, digestOf(Options{}, append(slices.Clone(merge), next...)...).Text(600), "Automatic merge failed")
	committed := append(merge, calls("", "4", "Bash", "command", "git add -A && git commit -m 'Merge the lamps'"), result("4", "[cellar 1a2b3c4] Merge the lamps\n 1 file changed, 1 insertion(+)"))
	text := digestOf(Options{}, append(committed, next...)...).Text(600)
	wantIn(t, text, "1a2b3c4")
	wantNotIn(t, text, "merge failed", "--help")
	other := []*chat.Message{
		user("Run the suite of the cellar, please."), calls("", "1", "Bash", "command", "./run_suite.sh --all"), result("1", "Exit code 1\nerror: merge conflict dialog does not open"),
		calls("", "4", "Bash", "command", "git commit -am 'Paint the hall'"), result("4", "[cellar 1a2b3c4] Paint the hall"),
	}
	wantIn(t, digestOf(Options{}, append(other, next...)...).Text(600), "merge conflict dialog")
}
