package extract

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// moveFiles gives the files that a command moves their new names, and drops those that it deletes.
func (s *history) moveFiles(command string) {
	if !strings.Contains(command, "mv ") && !strings.Contains(command, "rm ") { // most commands
		return
	}
	folder := "" // where the commands run, "" if it is not known
	for _, c := range shell.Commands(command) {
		if strings.Contains(c.Text, " --cached") { // the files stay
			continue
		}
		words := slices.DeleteFunc(strings.Fields(strings.TrimPrefix(c.Text, "git ")), func(w string) bool { return strings.HasPrefix(w, "-") })
		switch {
		case len(words) == 2 && words[0] == "cd" && path.IsAbs(words[1]):
			folder = words[1]
		case len(words) > 2 && words[0] == "mv":
			to := words[len(words)-1]
			for _, from := range words[1 : len(words)-1] {
				if len(words) > 3 || to == "." || strings.HasSuffix(to, "/") { // into a folder
					s.moveFile(folder, from, path.Join(to, path.Base(from)))
				} else {
					s.moveFile(folder, from, to)
				}
			}
		case len(words) > 1 && words[0] == "rm":
			for _, w := range words[1:] {
				s.moveFile(folder, w, "")
				if folder == "" {
					s.dropCopies(w)
				}
				if below, ok := strings.CutPrefix(shell.JoinFolder(folder, w), s.folder+"/"); ok && s.folder != "" && strings.Contains(below, "/") { // as descriptions have it
					s.dropCopies(below)
				}
			}
		}
	}
}

// moveFile renames the file of that name in a folder or, where that is not known, whose path ends with it, if there is only
// one, or all in the folder of that name. It drops the file if there is no new name.
func (s *history) moveFile(folder, from, to string) {
	if base := path.Base(from); base == "." || base == ".." { // which no program moves
		return
	}
	from, to = strings.TrimPrefix(from, "./"), strings.TrimPrefix(to, "./")
	if folder != "" && !path.IsAbs(from) {
		from = path.Join(folder, from)
		if to != "" && !path.IsAbs(to) {
			to = strings.TrimSuffix(folder, "/") + "/" + to
		}
	}
	var found, within []string
	for p := range s.files {
		if p == from || strings.HasSuffix(p, "/"+from) {
			found = append(found, p)
		}
		if path.IsAbs(from) && strings.HasPrefix(p, from+"/") {
			within = append(within, p)
		}
	}
	slices.Sort(within)
	for _, p := range within {
		now := ""
		if to != "" {
			now = to + p[len(from):]
		}
		s.moveFile("", p, now)
	}
	if len(found) != 1 {
		return
	}
	was, now := found[0], to
	if now != "" && !path.IsAbs(now) {
		now = strings.TrimSuffix(was, from) + now
	}
	f := s.files[was]
	delete(s.files, was)
	if len(s.gone) < maxFiles {
		s.gone[was] = s.messages
	}
	if now != "" && s.files[now] == nil {
		f.path = strings.Clone(now)
		s.files[f.path] = f
	}
	for _, c := range s.calls {
		had := len(c.paths)
		for i, p := range c.paths {
			if p == was {
				c.paths[i] = now
			}
		}
		if c.paths = slices.DeleteFunc(c.paths, func(p string) bool { return p == "" }); len(c.paths) < had && len(c.paths) == 0 && (c.changes && !c.runsToo || !c.isShell) {
			c.drop("deleted later")
		}
		if c.change != nil {
			for _, e := range c.change.files {
				if e.path == was {
					e.path = now
				}
			}
		}
	}
}

// joinFolder names the files of a command by the folder that it runs in, unless they are known by their names.
func (s *history) joinFolder(c *toolCall) {
	if !slices.ContainsFunc(c.paths, func(p string) bool { return !path.IsAbs(p) }) {
		return
	}
	folder := s.folder
	if m := folderFirst().FindStringSubmatch(c.command); m != nil {
		folder = m[1]
	}
	moves := 0
	for _, x := range shell.Commands(c.command) {
		if strings.HasPrefix(x.Text, "cd ") {
			moves++
		}
	}
	for i, p := range c.paths {
		whole := path.Join(folder, p)
		if path.IsAbs(p) || strings.HasPrefix(p, "~") || s.files[p] != nil || folder == "" || moves > 1 || moves == 0 && s.files[whole] == nil {
			continue
		}
		c.paths[i] = whole
	}
}

// dropCopies takes the commands that did nothing but copy to a file, or into a folder, which was deleted, from what was done.
func (s *history) dropCopies(file string) {
	file = strings.TrimSuffix(file, "/")
	for _, c := range s.calls {
		if !c.acts || !c.isShell || !strings.Contains(c.description, "cp ") {
			continue
		}
		folder, copies := "", false
		if !slices.ContainsFunc(shell.Commands(c.description), func(x shell.Command) bool {
			words := strings.Fields(loopWords().ReplaceAllString(x.Text, ""))
			if n := len(words); n > 0 && words[0] == "cd" {
				folder = shell.JoinFolder(folder, words[n-1])
			} else if n > 0 && words[0] == "cp" {
				to := shell.JoinFolder(folder, words[n-1])
				copies = true
				return to != file && !strings.HasPrefix(to, file+"/") && !strings.HasSuffix(to, "/"+file)
			}
			return len(words) > 0 && !x.Prepares() && !passive[words[0]]
		}) && copies {
			c.drop("deleted later")
		}
	}
}

// drop takes a call from what was done.
func (c *toolCall) drop(outcome string) {
	c.failed, c.undone, c.acts, c.outcome = true, true, false, outcome
}

// made returns a file with the changes of which there is a result: others were not made, or not yet.
func (s *history) made(f *file) *file {
	made := *f
	for _, c := range s.openCalls {
		if c.changes && slices.Contains(c.paths, f.path) {
			made.changes = max(0, made.changes-1)
		}
	}
	return &made
}

// isNew reports whether nothing was changed in the file since it was created: what was said before is about it only if it
// was missing.
func (f *file) isNew() bool { return f.created && f.changes == 1 }

// String returns the line of the file, which restoreFile reads.
func (f *file) String() string {
	var uses []string
	if f.changes > 0 {
		uses = append(uses, fmt.Sprintf("changed %d", f.changes))
	}
	if f.reads > 0 {
		uses = append(uses, fmt.Sprintf("read %d", f.reads))
	}
	mark := fileMark
	if f.created {
		mark = createdFileMark
	}
	return mark + text.Trim(f.path) + ": " + strings.Join(uses, ", ") + "\n"
}
