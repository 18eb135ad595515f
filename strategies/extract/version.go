package extract

// Version names how summaries and references are made. It changes whenever the same
// messages make another text.
const Version = "extractive/1"
