// Package reports describes sessions, runs and summaries for the command line and the API: their JSON,
// and the explanations and previews that need the configuration.
package reports
