// Package stub shortens tool traffic: one line in place of a tool's result, and
// arguments whose long strings are cut.
//
// It is text in, text out: no state, no error, no panic, and time linear in its
// input. It knows neither messages nor views.
package stub
