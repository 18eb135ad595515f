package shell

import (
	"path"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Folder returns the first word of what WithoutFolder leaves out at the beginning of a command, its folder where it changes
// that, "" for none.
func Folder(command string) string {
	folder, _, _ := strings.Cut(strings.TrimPrefix(folderPrefix().FindString(command), "cd "), " ")
	return folder
}

// WithoutFolder returns a command without the change of the folder, assignments and words of the shell before it, and
// without the folder that it names as an option.
func WithoutFolder(command string) string {
	return folderOption().ReplaceAllString(folderPrefix().ReplaceAllString(command, ""), "$1")
}

var (
	folderPrefix = text.Pattern(`^(?:(?:cd [^;&|]+|for \w+ in [^;&|]+|do|if|while|then|\w+=(?:\$\([^)]*\)|"[^"]*"|[^ ;&|])*) *(?:&&|;| ) *)+`)
	folderOption = text.Pattern(`^(git|go|make|kubectl|oc|helm|docker(?:-compose| compose)?|terraform|gh|glab|aws|az|gcloud|argocd|vault|systemctl)` +
		`(?: (?:-[CcnRfpH]|--(?:git-dir|work-tree|namespace|context|kube-context|kubeconfig|repo|file|profile|project|project-name|region|host|server|cluster)) \S+` +
		`| --?[a-z][\w-]*=\S+| --(?:no-pager|user|debug|quiet))+`)
)

// JoinFolder returns the folder that "cd to" leads to from a folder, which is "" if it is not known.
func JoinFolder(folder, to string) string {
	if folder == "" || path.IsAbs(to) {
		return path.Clean(to)
	}
	return path.Join(folder, to)
}
