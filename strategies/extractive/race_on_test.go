//go:build race

package extractive

const raceEnabled = true
