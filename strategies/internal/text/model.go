package text

import (
	"regexp"
	"strings"
)

// vendor matches the region and the vendor that Bedrock puts before a model.
var vendor = regexp.MustCompile(`^([a-z-]+\.)+`)

// ModelNames returns the names by which tables may list a model, in lower case and in the
// order in which to try them: without its provider ("openai/gpt-4o") and without Bedrock's
// region and vendor ("us.anthropic.claude-…"), after a colon ("ft:gpt-4o:org"), and with
// the vendor. The SQL function model_names returns the same.
func ModelNames(model string) [3]string {
	name := strings.ToLower(strings.TrimSpace(model))
	name = name[strings.LastIndexByte(name, '/')+1:]
	_, after, _ := strings.Cut(name, ":")
	return [3]string{vendor.ReplaceAllString(name, ""), after, name}
}
