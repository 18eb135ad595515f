package summary

import "strings"

// made returns an invalid secret, composed here so that no file of this
// repository holds anything that looks like one.
func made(prefix string, n int) string {
	const letters = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7"
	return prefix + strings.Repeat(letters, n/len(letters)+1)[:n]
}
