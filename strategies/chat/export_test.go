package chat

// Plain and Scan are the two paths of Check.
var Plain = plain

func Scan(view []Meta) []Violation { return scanView(view).violations }
