package retention

// IdentifiersIn returns the identifiers in a text (see ids).
func IdentifiersIn(text string) []string { return ids(text) }

// LabelsBefore returns the labels of what begins at a byte of a text (see labels).
func LabelsBefore(text string, at, reach int) []string { return labels(text, at, reach) }

// Words returns the words to retain (see usedAgain).
func (c *Case) Words() []string { return c.words }
