package config

// docs says what each setting does, in the words of the example file.
func docs() map[string]string {
	return map[string]string{ //nolint:gosec // what an address looks like, nobody's password
		"tenant": "Tenant that commands work on.",

		"database.url":       "Postgres, as postgres://user:password@host:5432/database or key=value pairs.",
		"database.schema":    "Schema that holds all tables and functions, beside an application's own.",
		"database.max_conns": "Connections at most; 0 is worker.concurrency and four more, at most 20.",

		"redis.url": "Redis, as redis://:password@host:6379/0, rediss://, redis-socket:// or redis-sentinel://.",

		"policy.preset": "A policy by name, for what is not given here: chat, research, strict or tool_heavy\n" +
			"(`compactor compact-file --help` describes them); \"\" is the values of this file. research\n" +
			"and strict need a summarizer, and none can be configured yet.",
		"policy.window_tokens": "Context window of every model, in tokens; 0 takes it from the built-in table\n" +
			"(128,000 for a model it does not know).",
		"policy.windows": "Context window by model or beginning of a model's name, before everything else:\n" +
			"{gpt-4o: 128000, my-model: 32000}. The longest match wins.",
		"policy.start":  "Fraction of the window above which a session is compacted.",
		"policy.target": "Fraction of the window it is compacted to; less than start.",
		"policy.start_tokens": "Both as absolute numbers of tokens instead; given together or not at all (0).\n" +
			"For a model whose window is smaller they are scaled into it.",
		"policy.target_tokens": "See start_tokens.",
		"policy.pipeline": "Strategies in order; it stops as soon as the target is met. A truncation without\n" +
			"metric, max_n and compact_to cuts to the target in tokens.",
		"policy.fallback": "Drop the oldest groups when the pipeline ends above the target.",
		"policy.min_gain_tokens": "A run that would save less is discarded: rewriting a view costs the provider's\n" +
			"prompt cache, so a handful of tokens is not worth it.",
		"policy.estimate_margin": "Added, as a fraction, to token counts that are estimates.",
		"policy.preserve_system": "Keep every system message.",
		"policy.pin_tools": "Tools whose calls stay in the view with their results, verbatim, such as [load_policy, read_skill].\n" +
			"Every message that makes calls is read for that.",
		"policy.cron": "Start of the nightly sweep: five fields, a descriptor such as @daily, or @every 1h\n" +
			"(at least 1m, aligned to multiples).",
		"policy.timezone":  "Zone of cron, as an IANA name. In zones with summer time a start may be skipped or come twice.",
		"policy.debounce":  "An event run starts once a session has been quiet for this long …",
		"policy.max_delay": "… and this long after its first write at the latest.",
		"policy.cooldown":  "Automatic runs leave a session alone for this long after one that gained too little.",

		"worker.concurrency":    "Sessions compacted at a time.",
		"worker.lease":          "A run belongs to its worker for this long without a sign of life.",
		"worker.heartbeat":      "How often a worker gives one; at most half a lease.",
		"worker.job_timeout":    "Bound on one delivery of one run.",
		"worker.drain_timeout":  "Running jobs may take this long to end on shutdown.",
		"worker.check_interval": "How often an idle worker looks for tasks: start latency against load on Redis.",

		"scheduler.relay_interval":     "How often newly written sessions are looked for.",
		"scheduler.page_size":          "Sessions handled at a time.",
		"scheduler.redeliver_after":    "A queued run that nobody took is delivered again after this long; at least a lease.",
		"scheduler.leader_ttl":         "A scheduler leads for this long without a sign of life.",
		"scheduler.reconcile_interval": "How often lost work is looked for in Postgres.",

		"log.level":  "debug, info, warn or error.",
		"log.format": "auto (text on a terminal, JSON elsewhere), json or text.",
	}
}
