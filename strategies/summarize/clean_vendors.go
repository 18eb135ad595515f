package summarize

import (
	"regexp"
	"slices"
	"strings"
)

// moreVendors are those that Redact knows and more.
var moreVendors = vendors.and(vendorsOf([]vendorForm{
	// Stripe's webhooks; Shopify; Supabase; Netlify; Figma; Grafana; Sentry; NVIDIA;
	// Jina; Pinecone; RubyGems; Linear; Doppler; Pulumi; Prefect; Typeform; Brevo.
	{vendor{body: word, min: 20}, `whsec_ rk_prod_ shpss_ shpca_ shppa_ sbp_ sb_secret_ nfp_ figd_ figo_ glsa_ glc_ sntrys_ sntryu_
		nvapi- jina_ pcsk_ rubygems_ lin_oauth_ pul- pnu_ tfp_ xkeysib- xsmtpsib- rdme_ pscale_tkn_ pscale_pw_ pscale_oauth_ dckr_oat_`},
	// Google OAuth; LangSmith; New Relic; Postman; Heroku; Atlassian; Bitbucket; AWS Bedrock; Contentful; HubSpot.
	{vendor{body: word, min: 20}, `GOCSPX- lsv2_pt_ lsv2_sk_ NRAK- NRJS- NRII- PMAK- HRKU- ATATT3 ATCTT3 ATBB ABSK CFPAT- pat-na1- pat-eu1- pat-eu2-`},
	// Slack of browsers and of apps' configuration; Tailscale; DigitalOcean; Square; Buildkite; CircleCI; Cloudflare; Fly; Deno; Vercel.
	{vendor{body: word, min: 20}, `xoxc- xoxd- xoxo- tskey- dor_v1_ sq0atp- sq0csp- bkua_ CCIPAT_ CCIPRJ_ fo1_ ddp_ vcp_ vck_ ops_ey`},
	{vendor{body: word, min: 24, dotted: true}, "hvs. hvb. hvr. dp.pt. dp.st. xoxe.xoxp- xoxe.xoxb-"}, // Vault, Doppler, Slack
	{vendor{body: alnum, min: 32}, "sess- dapi shippo_live_ shippo_test_ oy2 EAACEdEose0cBA"},         // OpenAI, Databricks, Shippo, NuGet, Facebook
	{vendor{body: upperDigit, min: 16}, "ABIA ACCA"},                                                  // AWS
	{vendor{body: alnum, min: 20}, "LTAI re_ aio_"},                                                   // Alibaba, Resend, Adafruit
	{vendor{body: upperDigit, min: 58}, "AGE-SECRET-KEY-1"},                                           // age
}))

func (v byFirst) and(more byFirst) byFirst {
	for i := range v {
		v[i] = append(slices.Clone(v[i]), more[i]...)
	}
	return v
}

// moreVendorKeys are the words that have one of those forms and are no plain words.
func moreVendorKeys(s string, e *edits) { keysOf(s, &moreVendors, e) }

var (
	otherPrivate = regexp.MustCompile(`-----BEGIN PGP PRIVATE KEY BLOCK-----|PuTTY-User-Key-File-[0-9]`)
	otherEnds    = regexp.MustCompile(`-----END PGP PRIVATE KEY BLOCK-----|Private-MAC: *[0-9a-f]+`)
)

// morePrivateKeys are those of PGP and of PuTTY, or what there is of one: up to the
// next empty line but one.
func morePrivateKeys(s string, e *edits) {
	if !strings.Contains(s, "PGP PRIVATE KEY") && !strings.Contains(s, "PuTTY-User-Key-File-") {
		return
	}
	ends := otherEnds.FindAllStringIndex(s, -1)
	for _, begin := range otherPrivate.FindAllStringIndex(s, -1) {
		if begin[0] < e.end() {
			continue
		}
		for len(ends) > 0 && ends[0][0] < begin[1] {
			ends = ends[1:]
		}
		end := len(s)
		if len(ends) > 0 {
			end = ends[0][1]
		} else if n := strings.Index(s[begin[1]:], "\n\n"); n >= 0 {
			rest := begin[1] + n + 2
			end = rest
			if n := strings.Index(s[rest:], "\n\n"); n >= 0 {
				end = rest + n
			}
		}
		e.add(begin[0], end, hiddenKey, KindPrivateKey)
	}
}

// hookPaths are what stands before the secret of an address that posts a message.
var hookPaths = []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"}

// hooks are addresses that let who knows them post.
func hooks(s string, e *edits) {
	if !strings.Contains(s, "hooks") {
		return
	}
	for i := 0; ; {
		at := strings.Index(s[i:], "hooks")
		if at < 0 {
			return
		}
		at += i
		i = at + len("hooks")
		for _, p := range hookPaths {
			begin := at - strings.Index(p, "hooks")
			if begin < 0 || !strings.HasPrefix(s[begin:], p) {
				continue
			}
			start := begin + len(p)
			if end := hookSet.end(s, start); end-start >= 20 {
				e.mask(s, start, end, KindURLToken)
				i = end
			}
			break
		}
	}
}

var hookSet = setOf("0-9A-Za-z_/-")
