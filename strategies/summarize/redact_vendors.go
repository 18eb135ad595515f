package summarize

import "strings"

// vendor is the form of the keys that somebody hands out: a prefix and then at
// least min bytes of a set, up to the end of the word.
type vendor struct {
	prefix string
	body   *set
	min    int
	// dotted: single dots are part of it, but for the one that ends a sentence.
	dotted bool
}

// vendorForm is what follows some prefixes.
type vendorForm struct {
	vendor
	prefixes string
}

// byFirst are the vendors whose prefix starts with a byte.
type byFirst [256][]vendor

// vendors are those that Redact knows.
var vendors = vendorsOf([]vendorForm{
	// GitHub; Stripe; Perplexity, Firecrawl, Hugging Face, Replicate, npm, DigitalOcean,
	// Tavily, Exa, Groq; Hindsight, Mem0, ByteRover, RetainDB; Notion, Shopify, Linear.
	{vendor{body: alnum, min: 10}, `ghp_ gho_ ghu_ ghs_ ghr_ sk_live_ sk_test_ rk_live_ rk_test_
		pplx- fc- hf_ r8_ npm_ dop_v1_ doo_v1_ tvly- exa_ gsk_ hsk- mem0_ brv_ retaindb_ ntn_ shpat_ lin_api_`},
	{vendor{body: alnum, min: 30}, "xai- fw- fw_ fpk_"},                                                               // xAI, Fireworks
	{vendor{body: upperDigit, min: 16}, "AKIA ASIA"},                                                                  // AWS
	{vendor{body: hyphen, min: 8}, "pk-lf-"},                                                                          // Langfuse
	{vendor{body: hyphen, min: 10}, "xoxa- xoxb- xoxe- xoxp- xoxr- xoxs- xapp-"},                                      // Slack
	{vendor{body: underscore, min: 10}, "github_pat_ sk_ syt_"},                                                       // GitHub, ElevenLabs, Matrix
	{vendor{body: word, min: 10, dotted: true}, "sk- SG. glpat- glrt- glrtr-"},                                        // OpenAI and others, SendGrid, GitLab
	{vendor{body: word, min: 10}, "gloas- gldt- glcbt- glptt- glft- glimt- glagent- glsoat- glffct- glwt- GR1348941"}, // GitLab
	{vendor{body: word, min: 10}, "fal_ bb_live_ pypi- dckr_pat_"},                                                    // Fal, Browserbase, PyPI, Docker
	{vendor{body: word, min: 20}, "am_ ya29."},                                                                        // AgentMail, Google
	{vendor{body: word, min: 30}, "AIza"},                                                                             // Google
	{vendor{body: wordEqual, min: 20}, "gAAAA"},                                                                       // Fernet
})

func vendorsOf(forms []vendorForm) (out byFirst) {
	for _, f := range forms {
		for prefix := range strings.FieldsSeq(f.prefixes) {
			v := f.vendor
			v.prefix = prefix
			out[prefix[0]] = append(out[prefix[0]], v)
		}
	}
	return out
}
