package redact

import "strings"

// vendor is the format of a vendor's keys: a prefix and then at least min bytes of a set, up
// to the end of the word.
type vendor struct {
	prefix string
	body   *set
	min    int
	// dotted allows single dots within the key.
	dotted bool
}

// vendorForm is a format with several prefixes.
type vendorForm struct {
	vendor
	prefixes string
}

// byFirst holds vendors by the first byte of their prefix.
type byFirst [256][]vendor

// vendors holds the known formats of keys.
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
	{vendor{body: wordEqual, min: 20}, "gAAAA ATATT3 ATCTT3"},                                                         // Fernet, Atlassian
	// Stripe's webhooks; Shopify; Supabase; Netlify; Figma; Grafana; Sentry; NVIDIA;
	// Jina; Pinecone; RubyGems; Linear; Doppler; Pulumi; Prefect; Typeform; Brevo.
	{vendor{body: word, min: 20}, `whsec_ rk_prod_ shpss_ shpca_ shppa_ sbp_ sb_secret_ nfp_ figd_ figo_ glsa_ sntrys_ sntryu_
		nvapi- jina_ pcsk_ rubygems_ lin_oauth_ pul- pnu_ tfp_ xkeysib- xsmtpsib- rdme_ pscale_tkn_ pscale_pw_ pscale_oauth_ dckr_oat_`},
	// Google OAuth; LangSmith; New Relic; Postman; Heroku; Atlassian; Bitbucket; AWS Bedrock; Contentful; HubSpot.
	{vendor{body: word, min: 20}, `GOCSPX- lsv2_pt_ lsv2_sk_ NRAK- NRJS- NRII- PMAK- HRKU- ATBB ABSK CFPAT- pat-na1- pat-eu1- pat-eu2-`},
	// Slack of browsers and of apps' configuration; Tailscale; DigitalOcean; Square; Buildkite; CircleCI; Cloudflare; Fly; Deno; Vercel.
	{vendor{body: word, min: 20}, `xoxc- xoxd- xoxo- tskey- dor_v1_ sq0atp- sq0csp- bkua_ CCIPAT_ CCIPRJ_ fo1_ ddp_ vcp_ vck_ ops_ey`},
	{vendor{body: word, min: 24, dotted: true}, "hvs. hvb. hvr. dp.pt. dp.st. xoxe.xoxp- xoxe.xoxb-"}, // Vault, Doppler, Slack
	{vendor{body: alnum, min: 32}, "sess- dapi shippo_live_ shippo_test_ oy2 EAACEdEose0cBA"},         // OpenAI, Databricks, Shippo, NuGet, Facebook
	// PostHog; Notion; Render; Neon; SonarQube; Fly; Razorpay; Firebase; Confluent; Mapbox' and Google's have dots or slashes.
	{vendor{body: word, min: 20}, "phx_ secret_ rnd_ napi_ squ_ sqp_ sqa_ fm1_ fm2_ AKCp cflt xprv lsv2_"},
	{vendor{body: lowerHex, min: 32}, "key- SK"},        // Mailgun, Twilio
	{vendor{body: alnum, min: 70, dotted: true}, "pat"}, // Airtable
	{vendor{body: alnum, min: 14}, "rzp_live_ rzp_test_"},
	{vendor{body: alnum, min: 32}, "cio EAAB EAAC EAAG cli_"},
	{vendor{body: word, min: 30, dotted: true}, "1//0 access-production- access-sandbox- access-development- dt0c01."}, // Google, Plaid, Dynatrace
	{vendor{body: upperDigit, min: 16}, "ABIA ACCA"},                                                                   // AWS
	{vendor{body: alnum, min: 20}, "LTAI aio_ nsec1"},                                                                  // Alibaba, Adafruit
	// Cloudflare; Together; Cerebras; Flutterwave; Bitbucket; Vercel; EasyPost; Duffel; Cal.com; E2B; Docker's swarms;
	// MailerSend; Sourcegraph; Polar; Unkey; Inngest; Zuplo; Linear; Trigger; Postman.
	{vendor{body: word, min: 20}, `cfut_ cfat_ cfk_ tgp_v1_ csk- FLWSECK- FLWSECK_TEST- BBDC- vercel_blob_rw_ EZAK EZTK duffel_live_ duffel_test_
		cal_live_ e2b_ SWMTKN-1- mlsn. sgp_ polar_oat_ unkey_ signkey-prod- zpka_ lin_wh_ tr_prod_ tr_dev_ PMAT-`},
	{vendor{body: word, min: 40, dotted: true}, "v1.local. v2.local. v3.local. v4.local. v1.public. v2.public. v3.public. v4.public. v1.0-"}, // PASETO, Cloudflare
	{vendor{body: base64Set, min: 60}, "JDJhJD JDJiJD JDJ5JD JDYk"},                                                                          // hashes of passwords in base64
	{vendor{body: base64Set, min: 20}, "glc_"},                                                                                               // Grafana
	{vendor{body: word, min: 100}, "AQED"},                                                                                                   // LinkedIn
	{vendor{body: underscore, min: 24}, "re_"},                                                                                               // Resend
	{vendor{body: word, min: 40}, "pa- y0_ EAAA AQ.Ab8 IGQV"},                                                                                // Voyage, Yandex, Square, Gemini, Instagram
	{vendor{body: word, min: 60, dotted: true}, "sl.u. sl.B t1.9eu"},                                                                         // Dropbox, Yandex
	{vendor{body: setOf("0-9a-z$"), min: 40}, "access_token$production$ access_token$sandbox$"},                                              // Braintree
	{vendor{body: upperDigit, min: 58}, "AGE-SECRET-KEY-1"},                                                                                  // age
})

// withoutVendor returns v behind the prefix of a vendor's keys, if it has one.
func withoutVendor(v string) string {
	longest := 0
	for _, of := range vendors[v[0]] {
		if n := len(of.prefix); n > longest && n < len(v) && strings.HasPrefix(v, of.prefix) {
			longest = n
		}
	}
	return v[longest:]
}

// seconds holds the second bytes of prefixes by their first.
var seconds = secondsOf(&vendors)

func secondsOf(vendors *byFirst) (out [256]*set) {
	for first, of := range vendors {
		for _, v := range of {
			if out[first] == nil {
				out[first] = &set{}
			}
			out[first][v.prefix[1]] = true
		}
	}
	return out
}

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
