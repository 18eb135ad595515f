package cli

import (
	"reflect"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
)

// globals are the flags of every command.
type globals struct {
	ConfigFile string `name:"config" placeholder:"FILE" help:"Configuration file; else $$COMPACTOR_CONFIG, ./compactor.yaml, or the one in the user's configuration folder."`
	JSON       bool   `name:"json" help:"Write one JSON object."`

	ConfigFlags
}

// ConfigFlags has a flag for every setting: the flag that config.FlagName names, or
// one with that as an alias. They are texts, as the configuration checks them, and
// nil where they are not given.
type ConfigFlags struct {
	DatabaseURL    *string `name:"database-url" placeholder:"URL" group:"Settings:" help:"Postgres; else $$DATABASE_URL."`
	RedisURL       *string `name:"redis-url" placeholder:"URL" group:"Settings:" help:"Redis; else $$REDIS_URL."`
	DatabaseSchema *string `name:"database-schema" placeholder:"NAME" group:"Settings:" help:"Schema that holds all tables."`
	Tenant         *string `name:"tenant" placeholder:"NAME" group:"Settings:" help:"Tenant to work on."`
	StartTokens    *string `name:"start" aliases:"policy-start-tokens" placeholder:"TOKENS" group:"Settings:" help:"Compact sessions above this many tokens; goes with --target."`
	TargetTokens   *string `name:"target" aliases:"policy-target-tokens" placeholder:"TOKENS" group:"Settings:" help:"Compact them to this many tokens."`
	LogLevel       *string `name:"log-level" placeholder:"LEVEL" group:"Settings:" help:"debug, info, warn or error."`
	LogFormat      *string `name:"log-format" placeholder:"FORMAT" group:"Settings:" help:"auto, json or text."`

	DatabaseMaxConns  *string `name:"database-max-conns" hidden:""`
	Preset            *string `name:"policy-preset" hidden:""`
	WindowTokens      *string `name:"policy-window-tokens" hidden:""`
	Windows           *string `name:"policy-windows" hidden:""`
	Start             *string `name:"policy-start" hidden:""`
	Target            *string `name:"policy-target" hidden:""`
	Pipeline          *string `name:"policy-pipeline" hidden:""`
	Fallback          *string `name:"policy-fallback" hidden:""`
	MinGainTokens     *string `name:"policy-min-gain-tokens" hidden:""`
	EstimateMargin    *string `name:"policy-estimate-margin" hidden:""`
	PreserveSystem    *string `name:"policy-preserve-system" hidden:""`
	PinTools          *string `name:"policy-pin-tools" hidden:""`
	Cron              *string `name:"policy-cron" hidden:""`
	Timezone          *string `name:"policy-timezone" hidden:""`
	Debounce          *string `name:"policy-debounce" hidden:""`
	MaxDelay          *string `name:"policy-max-delay" hidden:""`
	Cooldown          *string `name:"policy-cooldown" hidden:""`
	Concurrency       *string `name:"worker-concurrency" hidden:""`
	Lease             *string `name:"worker-lease" hidden:""`
	Heartbeat         *string `name:"worker-heartbeat" hidden:""`
	JobTimeout        *string `name:"worker-job-timeout" hidden:""`
	DrainTimeout      *string `name:"worker-drain-timeout" hidden:""`
	CheckInterval     *string `name:"worker-check-interval" hidden:""`
	RelayInterval     *string `name:"scheduler-relay-interval" hidden:""`
	PageSize          *string `name:"scheduler-page-size" hidden:""`
	RedeliverAfter    *string `name:"scheduler-redeliver-after" hidden:""`
	LeaderTTL         *string `name:"scheduler-leader-ttl" hidden:""`
	ReconcileInterval *string `name:"scheduler-reconcile-interval" hidden:""`

	SummaryOnFailure       *string `name:"policy-summary-on-failure" hidden:""`
	SummarySizeShare       *string `name:"policy-summary-size-share" hidden:""`
	SummarySizeMinTokens   *string `name:"policy-summary-size-min-tokens" hidden:""`
	SummarySizeMaxTokens   *string `name:"policy-summary-size-max-tokens" hidden:""`
	SummarySizeWindowShare *string `name:"policy-summary-size-window-share" hidden:""`
	SummarySizeSlack       *string `name:"policy-summary-size-slack" hidden:""`
	SummaryReferences      *string `name:"policy-summary-references" hidden:""`
	SummaryFocus           *string `name:"policy-summary-focus" hidden:""`
	SummaryInstruction     *string `name:"policy-summary-instruction" hidden:""`
	SummaryPreTrim         *string `name:"policy-summary-pre-trim" hidden:""`
	SummaryMaxParts        *string `name:"policy-summary-max-parts" hidden:""`
	SummaryMaxCost         *string `name:"policy-summary-max-cost" hidden:""`
	SummaryCooldown        *string `name:"policy-summary-cooldown" hidden:""`
	SummaryCooldownNoModel *string `name:"policy-summary-cooldown-no-model" hidden:""`
	LLMModels              *string `name:"llm-models" hidden:""`
	LLMDeadlineMin         *string `name:"llm-deadline-min" hidden:""`
	LLMDeadlinePerToken    *string `name:"llm-deadline-per-token" hidden:""`
	LLMDeadlineMax         *string `name:"llm-deadline-max" hidden:""`
	LLMDeadlineConnect     *string `name:"llm-deadline-connect" hidden:""`
	LLMBudgetAttempts      *string `name:"llm-budget-attempts" hidden:""`
	LLMBudgetTokens        *string `name:"llm-budget-tokens" hidden:""`
	LLMBudgetCost          *string `name:"llm-budget-cost" hidden:""`
	LLMBudgetTime          *string `name:"llm-budget-time" hidden:""`
	LLMRetryBase           *string `name:"llm-retry-base" hidden:""`
	LLMRetryMax            *string `name:"llm-retry-max" hidden:""`
	LLMRetryWait           *string `name:"llm-retry-wait" hidden:""`
	LLMBreakerFailures     *string `name:"llm-breaker-failures" hidden:""`
	LLMBreakerOpen         *string `name:"llm-breaker-open" hidden:""`
	LLMCooldownTransient   *string `name:"llm-cooldown-transient" hidden:""`
	LLMCooldownNoProvider  *string `name:"llm-cooldown-no-provider" hidden:""`
}

// values are the settings that were given, by key.
func (f ConfigFlags) values() map[string]string {
	keys := map[string]string{}
	for _, k := range config.Keys() {
		keys[config.FlagName(k)] = k
	}
	out := map[string]string{}
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		text, _ := reflect.TypeAssert[*string](v.Field(i))
		if text == nil {
			continue
		}
		tag := v.Type().Field(i).Tag
		for _, name := range append(strings.Split(tag.Get("aliases"), ","), tag.Get("name")) {
			if k, ok := keys[name]; ok {
				out[k] = *text
			}
		}
	}
	return out
}
