package extract

import "testing"

// Agents put what the user said into an element, and what they know beside it.
func TestWordsInMarkup(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<task>\nCount the lamps of <hall>.\n</task>\n\n<environment_details>\n# Time\n10:00\n</environment_details>": "Count the lamps of <hall>.",
		"<open_files>\nhall.go\n</open_files>\n<user_query>\nCount the lamps.\n</user_query>":                         "Count the lamps.",
		"<task>\nWrite </task> below the list.\n</task>":                                                              "Write </task> below the list.",
		"Count the lamps.\n<environment_details>\nhall.go\n</environment_details>":                                    "Count the lamps.",
		"Count <b>all</b> lamps.":                         "Count <b>all</b> lamps.",
		"Why does this fail?\n<hall>\n<lamp/>\n</hall>":   "Why does this fail?\n<hall>\n<lamp/>\n</hall>",
		"<system-reminder>\nNo lamp.\n</system-reminder>": "<system-reminder>\nNo lamp.\n</system-reminder>",
		"<task>\nCount the lamps.":                        "<task>\nCount the lamps.",
	} {
		if got := spokenIn(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestIsGenerated(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{
		"<system-reminder>\nNo lamp.\n</system-reminder>":              true,
		"<bash-stdout>four</bash-stdout>\n<bash-stderr></bash-stderr>": true,
		"[Request interrupted by user]":                                true,
		"<task>Count the lamps.</task>":                                false,
		"<Lamp> may be no wider than <Hall>":                           false,
		"[URGENT] switch off the lamps [now]":                          false,
		"Count the lamps.":                                             false,
	} {
		if got := IsGenerated(message); got != want {
			t.Errorf("%q: %v, want %v", message, got, want)
		}
	}
}
