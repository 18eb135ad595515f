package shell

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// committing begins a command that commits.
var committing = text.Pattern(`^(?:sudo +)?(?:git(?: +-[cC] +\S+)* +(?:commit|ci)|jj (?:commit|new|describe))(?:\s|$)`)

// GitCommand is a command of git with its arguments.
type GitCommand struct {
	Name      string
	Arguments []string
	Folder    string // where it runs, "" if that is not known
	Shown     bool   // its output is that of the call
}

// GitCommands returns the commands of git in a command line.
func GitCommands(line string) []GitCommand {
	if !strings.Contains(line, "git ") { // most lines
		return nil
	}
	var out []GitCommand
	folder := ""
	all := Commands(line)
	for i, x := range all {
		words := strings.Fields(x.Text)
		if words[0] == "cd" && len(words) == 2 {
			folder = JoinFolder(folder, words[1])
		}
		if words[0] != "git" {
			continue
		}
		g := GitCommand{Folder: folder, Shown: i == len(all)-1 && len(x.To) == 0}
		for words = words[1:]; len(words) > 1 && strings.HasPrefix(words[0], "-"); words = words[2:] {
			if words[0] == "-C" {
				g.Folder = JoinFolder(folder, words[1])
			}
		}
		if len(words) > 0 {
			g.Name, g.Arguments = words[0], words[1:]
			out = append(out, g)
		}
	}
	return out
}

// Has reports whether one of the flags is an argument.
func (g GitCommand) Has(flags ...string) bool {
	return slices.ContainsFunc(g.Arguments, func(a string) bool { return slices.Contains(flags, a) })
}

// stages reports whether a command changes nothing but the index.
func (g GitCommand) stages() bool {
	if g.Name != "reset" {
		return g.Name == "add"
	}
	for i, a := range g.Arguments {
		if a == "--" {
			return true
		}
		if a != "-q" && a != "HEAD" && (i == 0 || g.Arguments[0] != "HEAD") {
			return false
		}
	}
	return true
}

// UnstagesAll reports whether nothing is staged after a command.
func (g GitCommand) UnstagesAll() bool {
	return g.Name == "reset" && !slices.ContainsFunc(g.Arguments, func(a string) bool { return a != "HEAD" && a != "-q" })
}

// OnlyStages reports whether a command line changes nothing but the index of a folder, "" for any.
func OnlyStages(line, folder string) bool {
	if !strings.Contains(line, "git ") || !strings.Contains(line, " add") && !strings.Contains(line, " reset") {
		return false
	}
	for _, x := range Commands(line) {
		if !strings.HasPrefix(x.Text, "git ") && !beginsWith(x.Text, []string{"cd ", "printf ", "echo "}) {
			return false
		}
	}
	all := GitCommands(line)
	return len(all) > 0 && !slices.ContainsFunc(all, func(g GitCommand) bool {
		return !g.stages() || g.Folder != "" && folder != "" && g.Folder != folder
	})
}

// Restored returns the files of the working tree that a command replaces by those of a commit or of the index.
func (g GitCommand) Restored() []string {
	switch dashes := slices.Index(g.Arguments, "--"); {
	case g.Name == "checkout" && dashes >= 0:
		return g.Arguments[dashes+1:]
	case g.Name == "checkout" && !g.Has("-b", "-B", "--orphan", "--detach", "-d"):
		return slices.DeleteFunc(slices.Clone(g.Arguments), func(a string) bool { return a != "." && (strings.HasPrefix(a, "-") || path.Ext(a) == "") }) // the others are branches
	case g.Name != "restore" || g.Has("--staged", "-S") && !g.Has("--worktree", "-W"):
		return nil
	}
	var files []string
	for i, a := range g.Arguments {
		if !strings.HasPrefix(a, "-") && (i == 0 || g.Arguments[i-1] != "-s" && g.Arguments[i-1] != "--source") {
			files = append(files, a)
		}
	}
	return files
}

// Among returns which of some paths the files are, or are in. Of several paths that end with a name it is the shortest.
func (g GitCommand) Among(files, paths []string) (out []string) {
	for _, f := range files {
		full, named := JoinFolder(g.Folder, f), []string(nil)
		for _, p := range paths {
			switch {
			case full == ".", strings.HasPrefix(p, full+"/"), !path.IsAbs(full) && strings.Contains("/"+p, "/"+full+"/"):
				out = append(out, p)
			case p == full, !path.IsAbs(full) && strings.HasSuffix(p, "/"+full), !path.IsAbs(p) && strings.HasSuffix(full, "/"+p):
				named = append(named, p)
			}
		}
		if len(named) > 0 {
			out = append(out, slices.MinFunc(named, func(a, b string) int { return cmp.Compare(len(a), len(b)) }))
		}
	}
	return out
}

// Commits reports whether a command line commits.
func Commits(line string) bool {
	return slices.ContainsFunc(Commands(line), func(c Command) bool {
		return committing().MatchString(c.Text) && !strings.Contains(c.Text, "--dry-run") && !strings.Contains(c.Text, "--help")
	})
}

// OnlyCommits reports whether a command line does nothing but one commit of what it adds, and checks.
func OnlyCommits(command string) bool {
	commits := 0
	for _, c := range Commands(command) {
		switch {
		case committing().MatchString(c.Text):
			commits++
		case !beginsWith(c.Text, []string{"cd ", "git add ", "git status "}) && !AttemptsOf("", c.Text)[0].Checks:
			return false
		}
	}
	return commits == 1
}
