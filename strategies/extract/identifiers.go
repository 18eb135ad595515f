package extract

// Kind is a class of identifiers.
type Kind uint8

// The classes. Each is written as the expression it stands for.
const (
	// UUID is \b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b.
	UUID Kind = iota
	// Email is \b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b.
	Email
	// Path is (?<![\w/.])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w@+-]+(?:\.[\w-]+)*, of
	// six characters or more, two ASCII letters side by side among them.
	Path
	// File is (?<![\w/.-])[\w-]+\.EXT\b, where EXT is one of a list of extensions.
	File
	// Code is (?<!\w)#?[A-Z0-9]{5,12}\b with a letter and a digit: orders,
	// reservations, flights.
	Code
	// SHA is \b[0-9a-f]{7,40}\b with a letter and a digit.
	SHA
	// Handle is \b[a-z]+(?:_[a-z]+)*_\d{3,}\b, as in credit_card_4421.
	Handle
	// Number is (?<![\w.])\d{4,}(?!\w).
	Number
	// Quoted is what stands between double quotes, back quotes or single quotes
	// that are no apostrophes: 3 to 60 characters of one line, an ASCII letter
	// among them, no white space at either end. The quotes are not part of it.
	Quoted

	kinds
)

var kindNames = [kinds]string{"uuid", "email", "path", "file", "code", "sha", "handle", "number", "quoted"}

// String returns the name of the class, in lower case.
func (k Kind) String() string {
	if k >= kinds {
		return "unknown"
	}
	return kindNames[k]
}

// All calls yield for every identifier of s, with the half-open range of bytes
// that it fills. It allocates nothing.
//
// Identifiers of one class do not overlap and come from left to right; those of
// different classes may overlap (a file name in quotes is both), and quoted ones
// come last. So the first Kind a value is met with is its kind: no value belongs
// to two classes, unless Quoted is one of them.
func All(s string, yield func(kind Kind, start, end int)) {
	scanWords(s, yield)
	scanEmails(s, yield)
	scanPaths(s, yield)
	scanFiles(s, yield)
	scanQuoted(s, yield)
}

// Set returns the identifiers of s and their kinds.
func Set(s string) map[string]Kind {
	found := map[string]Kind{}
	All(s, func(kind Kind, start, end int) {
		if _, ok := found[s[start:end]]; !ok {
			found[s[start:end]] = kind
		}
	})
	return found
}
