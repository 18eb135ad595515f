package shell

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShellCommands(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]Command{
		"":                              nil,
		"a b; c && d || e | f":          {{"a b", false, "", nil}, {"c", false, "", nil}, {"d", false, "&&", nil}, {"e", false, "||", nil}, {"f", false, "|", nil}},
		"a & b":                         {{"a", true, "", nil}, {"b", false, "", nil}},
		"(a && b) &":                    {{"a", false, "", nil}, {"b", true, "&&", nil}},
		"a 2>&1 &> x":                   {{"a 2>&1 &> x", false, "", nil}},
		`a "b; c" 'd & e' f\;g`:         {{"a b; c d & e f;g", false, "", nil}},
		`a "b \" ; c" d`:                {{`a b \" ; c d`, false, "", nil}},
		"a <<'EOF' > f\nb; c &\nEOF\nd": {{"a <<EOF > f", false, "", []string{"f"}}, {"d", false, "", nil}},
		"a <<-EOF\nEOF\nd &":            {{"a <<-EOF", false, "", nil}, {"d", true, "", nil}},
		"a <<< b; c":                    {{"a <<< b", false, "", nil}, {"c", false, "", nil}},
		"a 'not closed; b":              {{"a not closed; b", false, "", nil}},
		"a <<EOF\nnever closed; b\nc":   {{"a <<EOF", false, "", nil}},
		"a \\\n b":                      {{"a b", false, "", nil}},
	} {
		if got := Commands(in); !cmp.Equal(got, want, cmp.AllowUnexported(Command{})) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

func TestShownFiles(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"cat farm/shed.go": {"farm/shed.go"},
		"cd /farm && sed -n '1,40p' shed.go && printf '\\n--- roof ---\\n' && nl -ba ./roof.go | sed -n '24,52p'": {"shed.go", "./roof.go"},
		"head -50 README.md 2>/dev/null":            {"README.md"},
		"cat shed.go | wc -l":                       nil,
		"cat > shed.go <<EOF\npackage farm\nEOF":    nil,
		"sed -i 's/a/b/' shed.go":                   nil,
		"cat shed.go && rm shed.go":                 nil,
		"tail -f log.txt &":                         nil,
		"git diff":                                  nil,
		"sed -n '/^func store/,/^}/p' farm/shed.go": {"farm/shed.go"},
	} {
		if got := ShownFiles(command); !slices.Equal(got, want) {
			t.Errorf("%q: %q", command, got)
		}
	}
}
