package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

// What git took out of the working tree is not told as edited, and what it did not is.
func TestEditsThatGitDiscarded(t *testing.T) {
	t.Parallel()
	edited := func(files ...string) string { return uncommittedAllMark + strings.Join(files, ", ") }
	lost := func(files ...string) string { return discardedMark + strings.Join(files, ", ") }
	sh := func(command, result string) [2]string { return [2]string{command, result} }
	both := []string{edited("fuse.go", "lamp.go")}
	for name, tt := range map[string]struct {
		ran  [][2]string
		want []string
	}{
		"a file":                    {[][2]string{sh("cd /src && git checkout -- lib/lamp.go", "ok")}, []string{lost("lamp.go"), edited("fuse.go")}},
		"a file, without dashes":    {[][2]string{sh("git checkout lib/lamp.go && make lint", "ok")}, []string{lost("lamp.go"), edited("fuse.go")}},
		"a branch of that name":     {[][2]string{sh("git checkout lib", "Switched to branch 'lib'")}, both},
		"a file, by restore":        {[][2]string{sh("git -C /src restore lib/lamp.go && ls", "lib")}, []string{lost("lamp.go"), edited("fuse.go")}},
		"a folder":                  {[][2]string{sh("git checkout HEAD -- lib/", "")}, []string{lost("lamp.go"), edited("fuse.go")}},
		"all":                       {[][2]string{sh("git restore .", "")}, []string{lost("lamp.go", "fuse.go")}},
		"all of a folder":           {[][2]string{sh("cd lib && git checkout .", "")}, []string{lost("lamp.go"), edited("fuse.go")}},
		"a reset":                   {[][2]string{sh("git fetch && git reset --hard origin/main", "HEAD is now at 1f3e5a7 Wire it")}, []string{lost("lamp.go", "fuse.go")}},
		"a commit":                  {[][2]string{sh("git commit -am lamps", "[main 1f3e5a7] lamps"), sh("git reset --hard HEAD~1", "HEAD is now at 2f3e5a7 older")}, []string{lost("lamp.go", "fuse.go")}},
		"a commit, and no edit":     {[][2]string{sh("git commit -am lamps", "[main 1f3e5a7] lamps"), sh("git reset HEAD~1", "")}, both},
		"a stash that was dropped":  {[][2]string{sh("git stash", "Saved"), sh("git stash drop", "Dropped")}, []string{lost("lamp.go", "fuse.go")}},
		"a stash of another time":   {[][2]string{sh("git stash drop", "Dropped")}, both},
		"a stash that came back":    {[][2]string{sh("git stash && make lint", "ok"), sh("git stash pop", "ok"), sh("git status --short", " M lib/lamp.go")}, both},
		"a clean tree":              {[][2]string{sh("git stash && make lint ; git stash pop", "error: Your local changes would be overwritten by merge"), sh("git checkout -- cmd", ""), sh("git status --short", "")}, []string{lost("lamp.go", "fuse.go")}},
		"a clean tree, by a person": {[][2]string{sh("git status", "nothing to commit, working tree clean")}, []string{editedForMark + "fuse.go, lamp.go"}},
		"no clean tree":             {[][2]string{sh("git checkout -- cmd", ""), sh("git status --short", " M lib/lamp.go")}, both},
		"a part of the tree":        {[][2]string{sh("git checkout -- cmd", ""), sh("git status --short cmd", "")}, both},
		"an index":                  {[][2]string{sh("git restore --staged .", "")}, both},
		"a branch":                  {[][2]string{sh("git checkout main", "Switched"), sh("git reset lib/lamp.go", "")}, both},
		"a command that failed":     {[][2]string{sh("git checkout -- .", "fatal: not a git repository")}, both},
		"a repository for a trial":  {[][2]string{sh("cd /tmp && git init x && cd x && echo a > file.txt && git add . && git commit -m init", "[main (root-commit) 1f3e5a7] init"), sh("cd /tmp/x && git checkout .", "")}, both},
		"another folder":            {[][2]string{sh("cd /other && git reset --hard origin/main", "HEAD is now at 1f3e5a7 Wire it"), sh("git -C /other checkout .", ""), sh("cd /tmp/x && git reset --hard", "")}, both},
		"status of another folder":  {[][2]string{sh("git -C /other status --porcelain", ""), sh("cd /other && git status", "nothing to commit, working tree clean")}, both},
		"a filtered status":         {[][2]string{sh("git checkout -- cmd", ""), sh("git status --short | grep '^UU'", "")}, both},
		"a stash within a command":  {[][2]string{sh("git stash && git fetch && git reset --hard origin/main && git stash pop", "ok")}, both},
		"a stash that was applied":  {[][2]string{sh("git stash", "Saved"), sh("git stash apply", "ok"), sh("git stash drop", "Dropped")}, both},
		"a stash of a file":         {[][2]string{sh("git stash push -- lib/lamp.go", "Saved"), sh("git stash drop", "Dropped")}, both},
		"a stash that is open":      {[][2]string{sh("git stash", "Saved"), sh("git reset --hard", ""), sh("git status --short", "")}, both},
		"a file of a commit":        {[][2]string{sh("git checkout main -- lib/lamp.go", ""), sh("git restore -S fuse.go", "")}, []string{lost("lamp.go"), edited("fuse.go")}},
		"a file of a source":        {[][2]string{sh("git restore --source lib fuse.go", "")}, []string{lost("fuse.go"), edited("lamp.go")}},
		"quoted words":              {[][2]string{sh("git commit -am lamps", "[main 1f3e5a7] lamps"), sh(`grep -rn "git reset --hard HEAD~1" docs`, "docs/a.md:1")}, []string{editedAndCommitted + "fuse.go, lamp.go", committedMark + "[main 1f3e5a7] lamps"}},
		"a commit, seen clean":      {[][2]string{sh("git commit -am lamps", "[main 1f3e5a7] lamps"), sh("git status", "nothing to commit, working tree clean"), sh("git reset HEAD~1", "")}, both},
		"merged since":              {[][2]string{sh("git commit -am lamps", "[main 1f3e5a7] lamps"), sh("git pull --rebase", "Successfully rebased and updated refs/heads/main.")}, []string{editedAndCommitted + "fuse.go, lamp.go", mergedMark + "[main 1f3e5a7] lamps"}},
		"nothing to merge":          {[][2]string{sh("git commit -am lamps", "[main 1f3e5a7] lamps"), sh("git pull", "Already up to date.")}, []string{editedAndCommitted + "fuse.go, lamp.go", committedMark + "[main 1f3e5a7] lamps"}},
		"committed before":          {[][2]string{sh("git commit -am lamps", "[main 1f3e5a7] lamps"), sh("git checkout -- .", "")}, []string{editedAndCommitted + "fuse.go, lamp.go", committedMark + "[main 1f3e5a7] lamps"}},
	} {
		ms := []*chat.Message{user("Rewire the lamp in the hall, please.")}
		for i, file := range []string{"lib/lamp.go", "fuse.go"} {
			id := fmt.Sprint("e", i)
			ms = append(ms, calls("", id, "Edit", "file_path", "/src/"+file, "old_string", "a := 1", "new_string", "func Lamp() {}"), result(id, "ok"))
		}
		for i, r := range tt.ran {
			id := fmt.Sprint("r", i)
			ms = append(ms, calls("", id, "Bash", "command", r[0]), result(id, r[1]))
		}
		text := digestOf(Options{}, ms...).Text(900)
		state := slices.DeleteFunc(slices.Clone(sectionsOf(text)[sectionState]), func(l string) bool { return strings.HasPrefix(l, lastCallMark) || l == notChecked })
		if !cmp.Equal(state, tt.want) {
			t.Errorf("%s: %s", name, cmp.Diff(tt.want, state))
		}
		for _, file := range []string{"lamp.go", "fuse.go"} {
			if strings.Contains(text, "git commit") && strings.HasPrefix(tt.want[0], discardedMark) {
				t.Errorf("%s: a commit that is gone:\n%s", name, text)
			}
			if told := strings.Contains(strings.Join(sectionsOf(text)[sectionFiles], "\n"), file); told == (strings.HasPrefix(tt.want[0], discardedMark) && strings.Contains(tt.want[0], file)) {
				t.Errorf("%s: %s among the files: %v\n%s", name, file, told, text)
			}
		}
	}
}

// What commands moved or rewrote before all was discarded is not told.
func TestRewritesThatGitDiscarded(t *testing.T) {
	t.Parallel()
	for then, told := range map[string][2]bool{"git checkout -- .": {true, false}, "git reset --hard": {false, false}, "git checkout -- lamp.go": {true, true}, "cd docs && git checkout -- .": {true, true}, "git status": {true, true}} {
		text := digestOf(Options{}, user("Sort the lamps of the house by rooms, please."),
			calls("", "1", "Bash", "command", `cd lamps && for f in *.go; do [ "$f" != "hall.go" ] && git mv "$f" rooms/; done; ls`), result("1", "hall.go"),
			calls("", "2", "Bash", "command", "cd lamps/rooms && sed -i 's|hall|room|g' *.go"), result("2", ""), calls("", "3", "Bash", "command", "perl deploy.pl --to lamps"), result("3", "installed"),
			calls("", "4", "Bash", "command", then), result("4", ""), assistant("That is it.")).Text(900)
		if strings.Contains(text, "git mv") != told[0] || strings.Contains(text, "sed -i") != told[1] || !strings.Contains(text, "perl deploy.pl") {
			t.Errorf("%s: %v\n%s", then, told, text)
		}
	}
}

// What was staged is told until it is committed or not staged any more.
func TestStagingThatIsOver(t *testing.T) {
	t.Parallel()
	const staged = `printf 'y\nn\n' | git add -p lamp.go`
	for then, want := range map[string]bool{"git status": true, "git reset HEAD": false, "git reset": false, "git reset HEAD fuse.go": true, "git commit -m lamps": false} {
		text := digestOf(Options{}, user("Stage what belongs to the lamp, please."), calls("", "1", "Bash", "command", staged), result("1", "(2/2) Stage this hunk [y,n,q,a,d,K,J,g,/,e,p,?]?"),
			calls("", "2", "Bash", "command", then), result("2", "[main 1f3e5a7] lamps"), assistant("That is it.")).Text(900)
		if got := strings.Contains(text, "git add"); got != want {
			t.Errorf("%s: %v\n%s", then, got, text)
		}
		wantNotIn(t, text, "Stage this hunk")
	}
	reset := digestOf(Options{}, user("Take the lamp out of the index, please."), calls("", "1", "Bash", "command", "git add lamp.py"), result("1", ""), calls("", "2", "Bash", "command", "git reset"), result("2", "Unstaged changes after reset:\nM\tlamp.py"), assistant("It is out.")).Text(900)
	wantIn(t, reset, "Bash: git reset → M")
}

// Edits that the user took back are gone, and those of other turns are not.
func TestEditsThatTheUserTookBack(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"No, that is worse. I undid your changes, try again.": discardedMark + "fuse.go",
		"No, that is worse. Try it with another lamp.":        uncommittedAllMark + "(before this task) fuse.go, lamp.go",
	} {
		ms := []*chat.Message{user("Rewire the lamp in the hall, please.")}
		for i, file := range []string{"/src/lamp.go", "/src/fuse.go"} {
			id := fmt.Sprint(i)
			ms = append(ms, calls("", id, "Edit", "file_path", file, "old_string", "a := 1", "new_string", "func Lamp() {}"), result(id, "ok"), assistant("It is rewired."), user("Now the fuse of it."))
		}
		ms[len(ms)-1] = user(said)
		if text := digestOf(Options{}, ms...).Text(900); !slices.Contains(sectionsOf(text)[sectionState], want) {
			t.Errorf("%s: no %q in\n%s", said, want, text)
		}
	}
}

// What git does not track stays, and a folder for temporary files is that of the work where files were edited there.
func TestGitLeavesNewFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file, created string
		ran           [][2]string
		want          string
	}{
		"a new file":          {"/src/new.go", "File created successfully", [][2]string{{"git reset --hard", ""}, {"git checkout .", ""}}, uncommittedAllMark + "new.go"},
		"a new file, clean":   {"/src/new.go", "File created successfully", [][2]string{{"git reset --hard", ""}, {"git status --short", ""}}, discardedMark + "new.go"},
		"a temporary project": {"/tmp/proj/a.go", "ok", [][2]string{{"cd /tmp/proj && git commit -am x", "[main 1f3e5a7] x"}}, committedMark + "[main 1f3e5a7] x"},
		"after an archive":    {"/src/a.go", "ok", [][2]string{{"cd /tmp && tar xf a.tgz && cd /src && git commit -am x", "[main 1f3e5a7] x"}}, committedMark + "[main 1f3e5a7] x"},
	} {
		ms := []*chat.Message{user("Rewire the lamp in the hall, please."), calls("", "e", "Write", "file_path", tt.file, "content", "package a"), result("e", tt.created)}
		for i, r := range tt.ran {
			id := fmt.Sprint(i)
			ms = append(ms, calls("", id, "Bash", "command", r[0]), result(id, r[1]))
		}
		if text := digestOf(Options{}, ms...).Text(900); !slices.Contains(sectionsOf(text)[sectionState], tt.want) {
			t.Errorf("%s: no %q in\n%s", name, tt.want, text)
		}
	}
}

// A commit that was rewritten is told by its newest hash, and once for a request.
func TestCommitsThatWereRewritten(t *testing.T) {
	t.Parallel()
	const first, second = "[lamps 1f3e5a7] Wire the lamp of the hall", "[lamps 2b4d6f8] Wire the lamp of the hall"
	for name, tt := range map[string]struct {
		command, came, then string
		want, hasNo         []string
	}{
		"amended for the next request":   {"git commit --amend --no-edit", second, "Put the dimmer in as well, please.", []string{"hall' → " + second, "--amend --no-edit → " + second}, []string{"1f3e5a7"}},
		"amended for the same request":   {"git commit --amend --no-edit", second, "", []string{second}, []string{"1f3e5a7", "lamps later"}},
		"picked by a person":             {"git log --oneline -2", "2b4d6f8 Wire the lamp of the hall\n9a8b7c6 Add the hall", "I moved it onto main.", []string{"hall' → " + second}, []string{"1f3e5a7"}},
		"another commit of that subject": {"git log --oneline -2", "2b4d6f8 Wire the lamp of the hall\n1f3e5a7 Wire the lamp of the hall", "I did it once more.", []string{"hall' → " + first}, nil},
		"of another branch":              {"git log main --oneline -1", "2b4d6f8 Wire the lamp of the hall", "What is on main?", []string{"hall' → " + first}, nil},
		"picked for another branch":      {"git switch fix && git cherry-pick lamps", "[fix 2b4d6f8] Wire the lamp of the hall", "Pick it for the fix, too.", []string{"hall' → " + first}, nil},
		"picked again":                   {"git reset --hard origin/main && git cherry-pick 1f3e5a7", second, "Take it onto main, please.", []string{"hall' → " + second}, []string{"[lamps 1f3e5a7]"}},
		"reset to a hash":                {"git reset --hard 9a8b7c6", "HEAD is now at 9a8b7c6 Add the hall", "Take the lamp of the kitchen out again.", []string{"hall' → " + first}, []string{"3c5e7a9"}},
	} {
		ms := []*chat.Message{
			user("Rewire the lamp in the hall, please."), calls("", "1", "Edit", "file_path", "/src/lamp.go", "old_string", "a", "new_string", "dim(lamp)"), result("1", "ok"),
			calls("", "2", "Bash", "command", "git commit -am 'Wire the lamp of the hall'"), result("2", first),
		}
		if strings.Contains(name, "hash") {
			ms = append(ms, calls("", "8", "Bash", "command", "git commit -am hall"), result("8", "[lamps 9a8b7c6] Add the hall"), user("And the kitchen."), calls("", "9", "Bash", "command", "git commit -am kitchen"), result("9", "[lamps 3c5e7a9] Add the kitchen"))
		}
		if ms = append(ms, assistant("It is wired.")); tt.then != "" {
			ms = append(ms, user(tt.then))
		}
		ms = append(ms, calls("", "3", "Bash", "command", tt.command), result("3", tt.came), assistant("That is it."), user("Thank you, what is next?"), calls("", "4", "Bash", "command", "git push"), result("4", "pushed"), assistant("Nothing."))
		text, _, _ := strings.Cut(digestOf(Options{}, ms...).Text(900), "## References")
		for _, s := range tt.want {
			if !strings.Contains(text, s) {
				t.Errorf("%s: %q is missing:\n%s", name, s, text)
			}
		}
		for _, s := range tt.hasNo {
			if strings.Contains(text, s) {
				t.Errorf("%s: %q is told:\n%s", name, s, text)
			}
		}
	}
}
