// Package reports is what the command line and the API say of sessions, runs and summaries: their
// JSON, and the explanations and previews that need the configuration.
package reports
