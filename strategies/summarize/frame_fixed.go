package summarize

// What Frame puts around a summary that a model wrote, for strategies that frame by
// themselves.
const (
	FramePrefix = FrameHead + " " + frameNote + " " + noteEnd
	FrameSuffix = FrameEnd + frameTail
)
