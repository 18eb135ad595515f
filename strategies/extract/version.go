package extract

// Version identifies the algorithm. It changes whenever the same messages give another
// text.
const Version = "extractive/27"
