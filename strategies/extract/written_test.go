package extract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Files that a shell writes are edits of them.
func TestFilesWrittenByAShellAreEdits(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"cat > house/hall.yaml <<'EOF'\nlamp: 7\nnote: \"a > b.txt\"\nEOF": {"house/hall.yaml"},
		"cat <<EOF >> /etc/hosts\n10.0.0.7 hall\nEOF":                      {"/etc/hosts"},
		"cd house && echo 'LAMP=7' >> .env":                                {".env"},
		"printf lamp | tee hall.conf":                                      {"hall.conf"},
		"awk '{print $2}' hall.csv > lamps.csv":                            {"lamps.csv"},
		"sed -i 's/dark/lit/' hall.go":                                     {"hall.go"},
		"sed -i '' 's/a lamp/b lamp/g' x.go":                               {"x.go"},
		"sed -i s/dark-hall/hall/g src/x.go":                               {"src/x.go"},
		"cat > hall.py <<'EOF'\nprint(7)\nEOF\npython hall.py":             {"hall.py"},
		`echo "hall > lamp.txt"`:                                           nil,
		"echo 7 > /dev/null; cat hall.go > /tmp/hall.txt 2>/dev/null":      nil,
		"go test ./hall > hall.log 2>&1":                                   nil,
		"echo lamp 2> errors.txt":                                          nil,
	} {
		d := digestOf(Options{}, user("Set up the hall, please."), calls("", "1", "Bash", "command", command), result("1", ""), assistant("All of it is set up."), user("Now look at the door of the house."))
		c := d.history.calls[0]
		if got := c.paths; c.changes != (want != nil) || c.changes && !cmp.Equal(got, want) {
			t.Errorf("%s: %q", command, got)
		}
		text := d.Text(600)
		for _, f := range want {
			if !strings.Contains(text, "file "+f+": changed 1") || !strings.Contains(text, "no commit seen: "+earlierMark+f[strings.LastIndexByte(f, '/')+1:]) {
				t.Errorf("%s: %s is not told\n%s", command, f, text)
			}
		}
	}
	text := digestOf(Options{}, user("Set up the hall, please."),
		calls("", "1", "Bash", "command", "cat > hall.py <<'EOF'\nprint(lamp)\nEOF\npython hall.py"), result("1", "NameError: name 'lamp' is not defined"),
		calls("", "2", "Bash", "command", "cat hall.py"), result("2", "print(lamp)")).Text(600)
	if !strings.Contains(text, "NameError") || !strings.Contains(text, "hall.py: changed 1") {
		t.Errorf("%s", text)
	}
}
