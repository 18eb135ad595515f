package shell

import "testing"

func TestOnlyStages(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"git add lamp.go": true, "cd /docs && git add lamp.md": false, "git reset origin/main": false, "git reset HEAD lamp.go": true, "git reset -- lamp.go": true, "git reset --soft HEAD~1": false, "git add . && make": false} {
		if got := OnlyStages(line, "/src"); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
