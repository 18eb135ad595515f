package main_test

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sessionstore/compactor"

// A pattern names a package, or a package and all below it when it ends in
// "/...". Packages of the module are named by their folder.

// rule says which packages of the module a package may import.
type rule struct {
	pkg  string
	uses []string
}

// mayImport says which packages of the module each package may import: the
// first rule that matches it holds. A package without a rule is a fault, so that
// a new one gets a place. Test files may import any package.
var mayImport = []rule{
	// Leaves.
	{"strategies/backoff", nil},
	{"strategies/chat", []string{"strategies/internal/rawjson"}},
	{"strategies/internal/text", nil},
	{"strategies/internal/rawjson", nil},
	{"worker/jobs", nil},
	{"migrations", nil},
	// Helpers of tests; they start servers by running a command below cmd.
	{"store/storetest", nil},

	{"strategies/formats", []string{"strategies/chat", "strategies/internal/rawjson"}},
	{"strategies/tokens", []string{"strategies/chat", "strategies/internal/text"}},
	{"strategies/frame", []string{"strategies/chat", "strategies/internal/text"}},
	{"strategies/redact", []string{"strategies/internal/text"}},
	{"strategies/policy", []string{"strategies/chat", "strategies/backoff", "strategies/internal/text"}},
	{"strategies/llm/...", []string{
		"strategies/llm/...", "strategies/policy", "strategies/backoff", "strategies/chat", "strategies/redact", "strategies/tokens",
	}},
	{"strategies/stub", []string{"strategies/chat", "strategies/internal/text", "strategies/internal/rawjson"}},
	// Of the layers of an extract, each imports those before it.
	{"strategies/extract/internal/prose", []string{"strategies/internal/text"}},
	{"strategies/extract/internal/identifier", []string{"strategies/internal/text"}},
	{"strategies/extract/internal/reference", []string{
		"strategies/extract/internal/identifier", "strategies/extract/internal/prose", "strategies/redact",
	}},
	{"strategies/extract", []string{
		"strategies/chat", "strategies/frame", "strategies/redact", "strategies/internal/text",
		"strategies/extract/internal/...",
	}},
	{"strategies/plan", []string{"strategies/chat", "strategies/policy", "strategies/redact", "strategies/internal/text"}},
	{"strategies/pipeline", []string{"strategies/chat", "strategies/plan"}},
	{"strategies/summary", []string{
		"strategies/chat", "strategies/plan", "strategies/frame", "strategies/redact", "strategies/tokens",
		"strategies/policy", "strategies/llm", "strategies/extract", "strategies/internal/text",
	}},
	{"strategies/trajectory", []string{
		"strategies/chat", "strategies/plan", "strategies/redact", "strategies/stub",
		"strategies/internal/text", "strategies/internal/rawjson",
	}},
	{"strategies/strategiestest/...", []string{"strategies/..."}},
	{"strategies/builtin", []string{
		"strategies/chat", "strategies/plan", "strategies/pipeline", "strategies/frame", "strategies/redact", "strategies/stub",
		"strategies/summary", "strategies/tokens", "strategies/internal/text", "strategies/internal/rawjson",
	}},
	{"strategies", []string{
		"strategies/chat", "strategies/plan", "strategies/pipeline", "strategies/policy", "strategies/summary", "strategies/tokens",
	}},
	{"strategies/agent", []string{
		"strategies", "strategies/builtin", "strategies/chat", "strategies/plan", "strategies/pipeline", "strategies/tokens",
		"strategies/backoff", "strategies/internal/text",
	}},
	{"store/...", []string{"store/...", "strategies/chat", "strategies/formats", "strategies/backoff", "migrations"}},
	{"worker/...", []string{"worker/...", "strategies/...", "store"}},
	// The scheduler speaks of sessions, so it knows their types; it plans nothing.
	{"scheduler/...", []string{"scheduler/...", "store", "worker/jobs", "strategies/policy", "strategies/chat", "strategies/backoff"}},
	// The command line and the HTTP API stand beside each other, on the same reports and changes of
	// policies. The tools of MCP read one session and serve nothing themselves.
	{"cmd/internal/traces", []string{"strategies/backoff"}},
	{"cmd/internal/mcp", []string{"store", "strategies/chat", "strategies/tokens"}},
	{"cmd/internal/policies", []string{"cmd/internal/config", "cmd/internal/term", "store", "scheduler", "strategies/..."}},
	{"cmd/internal/reports", []string{
		"cmd/internal/config", "cmd/internal/policies", "cmd/internal/term", "store", "worker", "strategies/...",
	}},
	{"cmd/internal/api", []string{
		"cmd/internal/config", "cmd/internal/mcp", "cmd/internal/policies", "cmd/internal/reports", "store", "scheduler", "worker",
		"strategies/...", "migrations", // it shows those that are applied
	}},
	// The pages call the API, whose types they show.
	{"cmd/internal/web", []string{
		"cmd/internal/api", "cmd/internal/policies", "cmd/internal/reports", "cmd/internal/term", "store", "scheduler", "strategies/...",
	}},
	{"cmd/...", []string{"cmd/...", "strategies/...", "store", "store/attach", "migrations", "worker/...", "scheduler/..."}},
	{"deploy/...", []string{"strategies/...", "store", "cmd"}},
}

// onlyIn says which packages may import a library.
var onlyIn = []struct {
	library string
	pkgs    []string
}{
	// cmd/internal/dev/stack talks to the private server it starts, to make the
	// database that the store then opens; the benches measure statements of their own.
	{"github.com/jackc/pgx/v5/...", []string{"store/...", "migrations", "cmd/internal/dev/stack/...", "cmd/internal/dev/bench"}},
	{"database/sql/...", []string{"store/...", "migrations"}},
	{"github.com/pressly/goose/v3/...", []string{"migrations"}},
	{"github.com/sashabaranov/go-openai/...", []string{"strategies/llm"}},
	{"github.com/hibiken/asynq/...", []string{"worker/...", "scheduler/...", "cmd/..."}},
	// The ranks, which the loader holds, are for the counters; the encoder is what tests and
	// bench tokens compare them with.
	{"github.com/pkoukk/tiktoken-go/...", []string{"strategies/tokens/...", "cmd/internal/dev/bench"}},
	{"github.com/pkoukk/tiktoken-go-loader/...", []string{"strategies/tokens/...", "cmd/internal/dev/bench"}},
	{"github.com/prometheus/...", []string{"cmd/internal/metrics"}},
	{"github.com/danielgtaylor/huma/v2/...", []string{"cmd/internal/api"}},
	{"github.com/modelcontextprotocol/go-sdk/...", []string{"cmd/internal/mcp", "cmd/internal/api", "cmd/internal/cli"}},
	{"github.com/google/jsonschema-go/...", []string{"cmd/internal/mcp"}},
	// Whoever makes spans has OpenTelemetry's API; only a command that sends them has its SDK.
	{"go.opentelemetry.io/otel/...", []string{
		"store", "worker/...", "strategies/pipeline", "strategies/llm", "cmd/internal/api", "cmd/internal/cli", "cmd/internal/traces",
	}},
	{"go.opentelemetry.io/otel/sdk/...", []string{"cmd/internal/traces"}},
	{"go.opentelemetry.io/otel/exporters/...", []string{"cmd/internal/traces"}},
	{"github.com/alicebob/miniredis/v2/...", []string{"cmd/internal/dev/stack/...", "store/storetest"}},
	{"github.com/fergusstrange/embedded-postgres/...", []string{"cmd/internal/dev/stack"}},
	// Strategies are pure: only the model client talks to anybody.
	{"net/http/...", []string{"strategies/llm/...", "store/...", "worker/...", "scheduler/...", "cmd/...", "deploy/..."}},
}

// edge is one import: a package, the imported one, and the file.
type edge struct{ from, to, file string }

// faults returns one line for each import that is not allowed.
func faults(edges []edge) []string {
	var found []string
	for _, e := range edges {
		if to, ours := strings.CutPrefix(e.to, module+"/"); ours {
			i := slices.IndexFunc(mayImport, func(r rule) bool { return match(r.pkg, e.from) })
			switch {
			case i < 0:
				found = append(found, fmt.Sprintf("%s: package %s has no import rule", e.file, e.from))
			case !slices.ContainsFunc(mayImport[i].uses, func(p string) bool { return match(p, to) }):
				found = append(found, fmt.Sprintf("%s: %s must not import %s", e.file, e.from, to))
			}
			continue
		}
		for _, r := range onlyIn {
			if match(r.library, e.to) && !slices.ContainsFunc(r.pkgs, func(p string) bool { return match(p, e.from) }) {
				found = append(found, fmt.Sprintf("%s: %s must not import %s: only %s may", e.file, e.from, e.to, strings.Join(r.pkgs, ", ")))
			}
		}
	}
	return found
}

func match(pattern, pkg string) bool {
	root, below := strings.CutSuffix(pattern, "/...")
	return pkg == root || below && strings.HasPrefix(pkg, root+"/")
}

// walk calls visit with all non-test Go files of the module, whatever their build tags: the package and the file, relative to
// the root.
func walk(t *testing.T, root string, visit func(pkg, file string, content []byte) error) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			otherModule := err == nil && path != root
			if path != root && (otherModule || name == "testdata" || name == "node_modules" || name[0] == '.' || name[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // a file of the module
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		return visit(rel[:max(0, strings.LastIndex(rel, "/"))], rel, content)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// imports returns the imports of all non-test files of the module.
func imports(t *testing.T, root string) (edges []edge) {
	t.Helper()
	walk(t, root, func(pkg, file string, content []byte) error {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, content, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			edges = append(edges, edge{pkg, to, file})
		}
		return nil
	})
	return edges
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	edges := imports(t, moduleRoot(t))
	if len(edges) < 20 {
		t.Fatalf("only %d imports found: is this the module?", len(edges))
	}
	for _, fault := range faults(edges) {
		t.Error(fault)
	}
}

// The image ships a binary built with the tag nodev.
func TestProductionBinaryLeavesOutDevPackages(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "nodev", "./cmd/compactor")
	cmd.Dir = moduleRoot(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/cmd/internal/cli") {
		t.Fatalf("no cli among %d dependencies", len(deps))
	}
	for _, dep := range deps {
		for _, dev := range []string{
			module + "/cmd/internal/dev/...", module + "/strategies/llm/llmtest", module + "/strategies/strategiestest/...", module + "/store/storetest",
			"github.com/alicebob/miniredis/v2/...", "github.com/fergusstrange/embedded-postgres/...", "testing",
		} {
			if match(dev, dep) {
				t.Errorf("the production binary depends on %s", dep)
			}
		}
	}
}

func TestImportRules(t *testing.T) {
	t.Parallel()
	ours := func(pkg string) string { return module + "/" + pkg }
	for name, c := range map[string]struct {
		from, to string
		ok       bool
	}{
		"a package that the rule names":              {"store", ours("strategies/chat"), true},
		"a package below one that the rule names":    {"cmd/internal/cli", ours("worker/jobs"), true},
		"a package that the rule does not name":      {"store", ours("worker"), false},
		"a leaf imports none":                        {"worker/jobs", ours("strategies/chat"), false},
		"a package without a rule":                   {"util", ours("store"), false},
		"a name that only begins alike is another":   {"storefront", ours("strategies/chat"), false},
		"a library where it belongs":                 {"store", "github.com/jackc/pgx/v5/pgxpool", true},
		"a library where it does not":                {"cmd/internal/cli", "github.com/jackc/pgx/v5/pgxpool", false},
		"only one package sends spans":               {"worker", "go.opentelemetry.io/otel/sdk/trace", false},
		"strategies know no network":                 {"strategies", "net/http", false},
		"only tests import the helpers of tests":     {"cmd/internal/cli", ours("store/storetest"), false},
		"no package but an example imports commands": {"store/storetest", ours("cmd/internal/dev/stack"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := faults([]edge{{c.from, c.to, "x.go"}}); (len(got) == 0) != c.ok {
				t.Errorf("%s → %s: %v", c.from, c.to, got)
			}
		})
	}
}

// rootFaults returns the entries of the module root that do not belong there.
func rootFaults(files []string) (found []string) {
	allowed := []string{
		"cmd", "strategies", "store", "migrations", "worker", "scheduler", "deploy",
		"go.mod", "go.sum", "README.md", "LICENSE",
	}
	for _, file := range files {
		top, _, _ := strings.Cut(file, "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(allowed, top) && !slices.Contains(found, top) {
			found = append(found, top)
		}
	}
	return found
}

func TestRootHoldsOnlyAgreedFiles(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = moduleRoot(t)
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", errors.Unwrap(err))
	}
	for _, name := range rootFaults(strings.Fields(string(out))) {
		t.Errorf("%s does not belong at the module root", name)
	}
	if got := rootFaults([]string{".ci/run", "store/a.go", "util/a.go", "util/b.go", "main.go"}); !slices.Equal(got, []string{"util", "main.go"}) {
		t.Errorf("the check itself finds %v", got)
	}
}
