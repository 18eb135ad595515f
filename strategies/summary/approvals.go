package summary

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	approving = `(?:pre-?)?approv(?:ed|es|al)|confirm(?:ed|s|ation)|(?:pre-?)?authori[sz](?:ed|es|ation)|agree(?:d|s|ment)|permit(?:ted|s)|permission|allow(?:ed|s)|consent(?:ed|s)?|accept(?:ed|s|ance)|green-?lit|green[\s-]?light(?:ed|s)?|go-?ahead|ok(?:ay)?['’]?(?:ed|d)|okays?|sanctioned|cleared|sign(?:ed|s)[\s-]off|sign-off|waive[ds]|endorse[ds]|bless(?:ed|ing)|vouched|` +
		`carte\s+blanche|free\s+(?:hand|rein)|all-?clear|nod|trusts\s+(?:us|me|the\s+(?:agent|assistant|model|team))|(?:left|leaves?)\s+(?:it|this|that|the\s+\w+(?:\s\w+)?)\s+(?:up\s+)?to\s+(?:us|me|the\s+(?:agent|assistant|model))|likes?\s+the\s+idea|(?:did|does)\s+(?:approve|authori[sz]e|permit|allow|consent)|(?:g[ai]ves?|grant(?:ed|s))\s+(?:\w+\s+){0,3}access|gave\s+(?:\w+\s+){0,2}ok|ratified|assented|acquiesced|rubber-stamped|nodded|delegated|entrusted|empowered|thumbs[\s-]?up|waved\s+(?:\w+\s+)?through|opted\s+in(?:to)?`
	person   = `user|human|owner|customer|operator|client|requester|caller`
	agreeing = `(?:fine|happy|good|ok(?:ay)?|on\s+board|comfortable|cool)\s+(?:with|for\s+(?:us|me|(?:the\s+)?(?:assistant|agent|model|bot|team))\s+to\b)|in\s+favou?r\s+of|no\s+(?:objections?|problems?\s+with|(?:concerns?|reservations?|qualms|complaints?)\s+(?:about|with|against|to))|thumbs[\s-]?up|lets?\s+(?:us|me|the\s+assistant)`
	// saidYes is what gives an approval in words.
	saidYes = `reacted\s+with\s+(?:[👍✅🚀💯]|a\s+thumbs)|(?:said|says|answered|replied|responded|told\s+(?:us|me|the\s+assistant))(?:[\s,:—-]+(?:(?:that|to|it|is|was|it['’]s)\s+){0,3}(?:` + yes + `)\b|\s*["“'](?:` + yes + `)[,.!]?["”'])|` +
		`(?:wants|told|instructed|asked)\s+(?:us|me|it|the\s+assistant)\s+to\s+(?:go\s+ahead|proceed)\b|(?:said|says|stated|wrote|told\s+(?:us|me|the\s+assistant)|made\s+(?:it\s+)?clear)\s+(?:that\s+)?(?:the\s+(?:assistant|agent|model|bot)|we|i)\s+(?:may|can|could|should|(?:is|are)\s+(?:free|welcome|allowed)\s+to)\b`
	yes = `yes|ok(?:ay)?|fine|go\s+ahead|go\s+for\s+it|proceed|sure`
	// granting are nouns for what only a person gives.
	granting = `approval|clearance|go-?ahead|green[\s-]?light|sign-?off|blessing|carte\s+blanche`
	// grantable are nouns for what systems grant, too.
	grantable  = `permission|consent|authori[sz]ation`
	widening   = `widened|extended|expanded|broadened|enlarged`
	remit      = `scope|mandate|remit|authority|permissions?`
	lifting    = `lift(?:s|ed)?|retract(?:s|ed)?|waive[sd]?|drops?|dropped|withdr(?:aws?|ew|awn)|revoke[sd]?|removed?|relaxe[sd]|suspend(?:s|ed)?|cancel(?:s|l?ed)?`
	forbidding = `bans?|prohibitions?|restrictions?|rules?|constraints?|veto(?:es)?|objections?|freeze|embargo`
	gap        = `([^.!?;。！？।\n]{0,60}?)`
)

// foreignApproving matches words for an approval that was given, in other languages.
const foreignApproving = `\bs['’]oppose\s+pas\b|\bno\s+se\s+opone\b|\bnão\s+se\s+op[õo]e\b|\bdijo\s+que\s+sí|\bdisse\s+(?:que\s+)?sim\b|\ba\s+dit\s+oui\b|\bsagte\s+ja\b|\bja\s+gesagt\b|\bha\s+detto\s+(?:di\s+)?sì|сказал\p{L}*\s+да(?:[^\pL]|$)|はいと|\bverzichtet\p{L}*\s+auf|\brenonc\p{L}+\s+à|\brenunci\p{L}+\s+a\b|\bya\s+no\s+(?:exige|insiste|requiere|pide)\b|\bnão\s+(?:exige|precisa|pede)\s+mais\b|\bn['’](?:exige|insiste)\s+plus\b|\bbesprochen\b|\babgeklärt\b|\btudo\s+bem\b|\bparece\s+b(?:ien|em)\b|\bconvenu\b|\bconvenido\b|\bacordado\b|\bcombinado\b|\bafgesproken\b|\bconcordato\b|\bcarte\s+blanche\b|\bcarta\s+blan\p{L}+|\bfreie\s+hand\b|\bmano\s+libera\b|nichts\s+(?:dagegen|gegen)|\b(?:zustimmung|genehmigung|freigabe|erlaubnis|einverständnis)\b|не\s+(?:возража|против)|不反[对對]|賛成|(?:동의|승인|허락|허가)(?:함|됨|해|받)|(?:承認|許可|了承)済|zugestimmt|einverstanden|\bgab\s+\p{L}+\s+ok\b|\bfeu\s+vert\b|est[áa]\s+de\s+ac(?:ue|o)rdo\b|\bd['’]accordo?\b|\bconcord(?:a|ou)\b|\b(?:luz|luce)\s+verde\b|zielone\s+światło|groen\s+licht|зел[её]н\p{L}+\s+свет|abgestimmt|abgesprochen|vereinbart|согласован|погоджен|uzgodni|dohodnut|\bconsenso\b|deu\s+(?:permissão|autorização)|\bakkoord\b|дал[аи]?\s+(?:добро|згоду)|허용(?:했|하였)|[说說]可以|memberi(?:kan)?\s+izin|dal[ai]?\s+souhlas|συμφωνεί|genehmigte?\b|bestätigte?\b|freigegeben|abgesegnet|\berlaubte?\b|gebilligt|grünes\s+licht|\b(?:mit|die)\s+(?:zustimmung|genehmigung|freigabe|erlaubnis)\s+(?:des|der|vom)|` +
	`approuvé|confirmé|autorisé|\baccepté|validé|son\s+(?:accord|aval|autorisation)|avec\s+l['’](?:accord|aval|autorisation)|\baprobó|\baprobad[oa]|\bconfirmó|\bconfirmad[oa]|autorizó|autorizad[oa]|aceptó|dio\s+(?:permiso|su)|visto\s+bueno|\baprovou|\baprovad[oa]|autorizou|confirmou|aceitou|approvat[oa]|confermat[oa]|autorizzat[oa]|acconsentito|` +
	`goedgekeurd|bevestigd|toegestaan|toestemming|godkän(?:de|t)|bekräfta(?:de|t)|tillåt(?:it)?|godkend(?:te|t)?\b|godkjen(?:te|t)\b|tillat\b|tillod|hyväksy(?:i|nyt)|salli(?:i|nut)|vahvisti|` +
	`zatwierdzi[łl]|zaakceptowa[łl]|potwierdzi[łl]|zgodzi[łl]|zgodę|pozwoli[łl]|schváli[ll]|schválen|souhlasil|povolil|potvrdil|súhlasil|jóváhagy|engedélyezt|beleegyez|megerősít|aprobat|autorizat|confirmat|odobri(?:o|l)|dozvoli(?:o|l)|potvrdio|` +
	`onayla(?:dı|ndı)|onay\s+verdi|izin\s+verdi|kabul\s+etti|đồng\s+ý|phê\s+duyệt|cho\s+phép|chấp\s+thuận|menyetujui|disetujui|mengizinkan|diizinkan|meluluskan|membenarkan|ενέκρινε|εγκρίθηκε|επιβεβαίωσε|επέτρεψε|συμφώνησε|` +
	`одобри|одобрен|подтвердил|разрешил|согласил|согласие|разрешение|схвалив|підтвердив|дозволив|погодив|потвърди|разреши|одобрио|` +
	`批准|同意|确认|確認(?:しました|した|済み)?|授权|授權|允许|允許|承認(?:しました|した|済み|され)|許可(?:しました|した|され)|了承(?:しました|した|済み)|승인(?:했|하였|되)|허락(?:했|하였)|허가(?:했|하였)|동의(?:했|하였)|` +
	`אישר|הסכים|הרשה|وافق|موافقة|أذن|سمح|تأیید\s+کرد|تایید\s+کرد|موافقت\s+کرد|اجازه\s+داد|(?:मंजूरी|मंज़ूरी|अनुमति|स्वीकृति)\s+(?:दी|दे)|অনুমোদন|অনুমতি|ஒப்புதல்|அனுமதி|อนุมัติ|อนุญาต|ยินยอม`

// doing matches the beginnings of words for deeds that are hard to undo.
var doing = strings.Join(strings.Fields(strings.Join(deeds[1:], "")), "|")

// foreignApproved matches a passive of such words, which names no person.
const foreignApproved = `\b(?:wurden?|ist|sind)\s(?:[^.!?\n]{0,60}?\s)?(?:genehmigt|freigegeben|erlaubt|gebilligt|abgesegnet)\b|\b(?:a|ont)\s+été\s+(?:approuv|valid|autoris|accept)ée?s?|\b(?:ha\s+sido|han\s+sido|fue|fueron|queda|foi|foram)\s+(?:aprobad|autorizad|aprovad|permitid)[oa]s?\b|\bè\s+stat[oa]\s+(?:approvat|autorizzat)[oa]\b|` +
	`\b(?:is|werd)\s+goedgekeurd\b|(?:одобрен|согласован|разреш[её]н|утвержд[её]н)[аоы]?(?:[^\pL]|$)|已(?:获|被|经)?(?:批准|授权|允许|同意)|(?:承認|許可|了承)済|(?:승인|허가)(?:됨|되었|됐)`

// foreignLets matches that the user, with an article, allows something. An interface of users allows, too.
const foreignLets = `(?:\b(?:el|la|o|a|il|der|die)\s+|\bl['’])(?:usuari[oa]|usuári[oa]|utilisat(?:eur|rice)|utente|cliente?|nutzer(?:in)?|kunde)\s+(?:\p{L}+\s+)?(?:permite|permitió|permitiu|autoriza|aprueba|aprova|acepta|aceita|autorise|permet|approuve|accepte|valide|permette|approva|libera|liberou|liberó|gestattete?|bewilligte?)(?:[^\pL]|$)`

// reviewable are words for what others approve than the user.
const reviewable = `prs?|mrs?|commits?|pull|merge|patch|invoices?|orders?|payments?|transactions?|loans?|builds?|releases?|tickets?|api|keys?|tokens?|requests?|endpoints?|routes?|roles?|accounts?|headers?|sessions?|logins?|review\w*|posts?|comments?|applications?|invoice|status|articles?`

// ending matches the rest of a word in scripts with blanks between words.
const ending = `[\p{Latin}\p{Cyrillic}\p{Greek}\p{Hangul}\p{Hebrew}\p{Arabic}]*`

var (
	// approvals matches claims in folded English that the user approved something, in both
	// voices.
	approvals = text.Pattern(`(?i)\b(?:` + person + `)(?:['’]s)?\b(?:\s*\([^()\n]{1,40}\)|,[^,.;\n]{1,60},|\s+at\s+\d{1,2}:\d\d)?[\s*_:,"”\x60→=>|–—-]{1,4}(?:(?:not\s+only|since|personally|has|have|had|already|also|now|then|explicitly|expressly|clearly|verbally|fully|previously|later|finally|just|just\s+now|given|gave|gives|granted|grants|provided|provides|raised|issued|is|was|were|been|full|final|written|verbal|oral|clear|explicit|seem(?:s|ed)|sound(?:s|ed)|their|his|her|its|the|an?|on|to|in|us|me|chat|decision:?)\s+){0,8}(?:(?:` + approving + `|` + agreeing + `)\b|` + saidYes + `)|` +
		`\b(?:` + approving + `|given|granted|obtained|received)\s+(?:(?:\w+)\s+){0,3}(?:by|from|of|with)\s+(?:\w+\s+\()?(?:the\s+(?:[\w-]+\s+){0,2})?(?:` + person + `)\b|` +
		`\b(?:with|has|have|had|got|obtained|received|under)\s+(?:the\s+)?(?:\w+\s+)?(?:` + person + `|everyone|everybody|team|management)['’]s\s+(?:\w+\s+)?(?:` + approving + `|ok)\b|\b(?:` + person + `)['’]s\s+(?:ok(?:ay)?|go\s+(?:for|on|to))\b|(?-i:\b[A-Z][a-z]+)(?:\s+(?:has|had|also|then|now|already))*\s+(?:approved|authori[sz]ed|okayed|green-?lit|signed\s+off(?:\s+on)?|consented\s+to|is\s+(?:fine|ok(?:ay)?|happy|good)\s+with|has\s+no\s+objections?|gave\s+(?:\w+\s+){1,2}(?:ok|okay|nod|` + granting + `))\b|\bwith\s+(?-i:[A-Z][a-z]+)['’]s\s+(?:\w+\s+)?(?:` + granting + `|` + grantable + `|ok|okay)\b|` +
		`\b(?:` + approving + `)\s*[:—-]?\s*(?:(?:was|is|has\s+been|were)\s+)?(?:given|granted|obtained|received)\b|` +
		`\bthe\s+(?:` + person + `)s\s+(?:(?:have|had|all|both|explicitly)\s+){0,3}(?:approved|authori[sz]ed|consented)\b|\bthe\s+(?:` + person + `)\s+(?:[\w'’-]+\s+){1,8}and\s+(?:approved|authori[sz]ed|consented|confirmed|agreed|okayed)\b|` +
		`\b(?:` + person + `)_approv(?:ed|al)["'\x60]?\s*[:=]\s*(?:true|yes)\b|\b(?:approved|authori[sz]ed)\s*\|\s*(?:` + person + `)\b|` +
		// in fields, by others than the user, and without a name
		`\bapprov(?:ed|al|er)(?:[_\s-]?by)?["'\x60]?\s*[:=(]+\s*["'\x60]?(?:the\s+)?(?:` + person + `)\b|\b(?:approvals?|` + granting + `|` + grantable + `)\b(?:\s+status)?([^.!?:;|\n]{0,80}?)\s*:[\s*_]*(?:[✅✔☑👍]|(?:approved|yes|ok|done)\b)|(?m:^)[\s>*+•☑✅-]*(?:\[x\]\s*)?(?:pre-?|user_)?approved\s*:(?:\s)|` +
		`\b(?:` + person + `)\s+(?:does|did|do|will|would)(?:\s+not|n['’]t)\s+(?:object|mind|care|oppose)\b|\b(?:they|he|she|(?:the\s+)?(?:admin|administrator|maintainer|manager|boss|management|everyone|compliance|legal|security|(?:team|tech)\s+lead|c[te]o|colleague|stakeholders?))\s+(?:(?:has|have|had|also|then|already|explicitly|all)\s+){0,3}(?:approved|authori[sz]ed|okayed|consented|signed\s+off|agreed\s+to|cleared\s+(?:the|us|me)|gave\s+(?:\w+\s+){0,3}(?:permission|consent|` + granting + `))\b|` +
		`\b(?:got|have|has|had|having|obtained|received|secured)\s+(?:obtained\s+|received\s+)?(?:the\s+|an?\s+|full\s+|explicit\s+|written\s+){0,2}(?:` + granting + `|ok|nod)\b|\b(?:we|i|the\s+(?:assistant|agent|model))\s+(?:now\s+|already\s+)?(?:have|has|had|hold)\s+(?:(?:\w+\s+)?(?:` + grantable + `)\s+(?:to|for)|(?:an?\s+)?(?:free\s+(?:rein|hand)|carte\s+blanche|full\s+(?:authority|discretion)))\b|\b(?:` + granting + `|` + grantable + `)\b([^.!?:;\n]{0,80}?)(?:\s(?:exists|came|has\s+come|arrived|(?:is|was)\s+(?:there|in\s+place|recorded|on\s+(?:record|file)))|(?:\s(?:is|was|were|has\s+been|have\s+been)|\s*:)\s+(?:granted|given|obtained|received))\b|` +
		`\b(?:we|i|you|the\s+(?:assistant|agent|model))(?:\s+(?:am|are|is|was|were|(?:have|has|had)\s+been)|['’](?:ve\s+been|re|m))\s+(?:now\s+|explicitly\s+|fully\s+)?(?:authori[sz]ed|allowed|permitted|cleared|empowered|told\s+(?:that\s+)?(?:i|we)\s+(?:can|may)|given\s+(?:permission|` + granting + `))\b|` +
		`\b(?:` + yes + `)\b[^.!?:;()\n]{0,60}\((?:by\s+)?(?:the\s+)?(?:` + person + `)\)|` +
		// without a verb, and of what was forbidden
		`\b(?:` + granting + `|` + grantable + `)\s+(?:(?:is|was)\s+)?(?:on\s+(?:file|record)|in\s+place|noted)\b|(?m:^|[.!?;:]\s)[\s>*+•-]*(?:(?:an?|the|full|explicit|written|verbal|blanket|general|standing|prior)\s+){0,2}(?:` + granting + `)\s+(?:for|to|on)\b|` +
		`\bthere\s+(?:is|was|has\s+been)\s+(?:(?:an?|the|now|also|full|explicit|written|verbal|clear|standing|general)\s+){0,3}(?:` + granting + `|` + grantable + `)\s+(?:for|to|by|from)\b|` +
		`\b(?:` + person + `)\s+(?:(?:has|have|had|also|now|then|since|later|explicitly)\s+){0,3}(?:` + lifting + `)\s+(?:the|their|his|her|its|that|this|any|all)\s+(?:\w+\s+){0,2}(?:` + forbidding + `)\b|\b(?:` + forbidding + `)\b([^.!?;\n]{0,60}?)\s(?:is|was|are|were|(?:has|have)\s+(?:\w+\s+)?been)\s+(?:\w+\s+)?(?:lifted|relaxed|retracted|waived)\b|` +
		`\b(?:` + person + `)\s+(?:(?:has|have|had|also|then|now)\s+){0,2}(?:chose|opted|elected|decided|resolved|picked)\s+(?:to|for|on)\s+((?:the\s+)?(?:` + strings.Join(strings.Fields(allDeeds), `|`) + `)\w*)|` +
		`\b(?:` + person + `)['’]s\s+(?:response|reply|answer|reaction|decision)\b([^.!?\n]{0,80}?)\s(?:is|was)\s+(?:positive|affirmative|favou?rable|an?\s+(?:clear\s+)?yes)\b|\b(?:` + granting + `|` + grantable + `)\s*\((?:the\s+)?(?:` + person + `)\b|` +
		`\?[*_"”’)]*\s+(?:yes|yeah|ja|oui|sí|sì|sim|tak|да)\b[,:]?\s+(?:it|they|that|this|you|we)\s+(?:may|can|should|must)\b|` +
		`\b(?:(?:may|shall|should)\s+(?:the\s+(?:agent|assistant|model|bot)|we|i)\b|is\s+it\s+(?:ok(?:ay)?|fine|allowed)\b)([^?\n]{0,120})\?[*_"”’)]*[\s|:—–-]{1,6}[*_]*(?:(?:a|answer)\s*:\s*)?yes\b|` +
		`\b(?:` + person + `)\b([^.!?:;\n]{0,60}?)\s(?:in\s+the\s+affirmative|affirmatively|with\s+an?\s+(?:(?:clear|firm|quick|simple|short)\s+)?(?:yes|ok(?:ay)?|nod|thumbs[\s-]up|` + granting + `))\b|` +
		`\b(?:` + person + `)\s+(?:(?:has|have|had|also|then|now|since|later)\s+){0,2}(?:` + widening + `)\s+(?:(?:the|our|its|this)\s+)?(?:\w+\s+)?(?:` + remit + `)\b|\b(?:` + remit + `)\s+(?:(?:is|was|has\s+been|now)\s+){0,2}(?:` + widening + `)\b|` +
		`\b(?:blanket|general|standing|full)\s+(?:` + granting + `|` + grantable + `)\b([^.!?:;\n]{0,60}?)\s(?:is|was|are)\s+(?:now\s+)?(?:in\s+(?:effect|force)|active|valid)\b|` +
		// what the user is said to let
		`\b(?:per|according\s+to)\s+the\s+(?:` + person + `),([^.!?\n]{1,90}?)\s(?:without\s+(?:(?:further|any|prior|more)\s+)*(?:asking|checking|confirm\w*|approval|questions?|consult\w*)|at\s+will|freely)\b|` +
		`\b(?:` + person + `)\s+no\s+longer\s+(?:minds?|objects?|opposes?|forbids?|insists?|rules?\s+out|(?:wants?|needs?|has|requires?|expects?|asks?)\s+to\s+(?:wait|see|review|check|look|approve|confirm|know|be\s+(?:asked|told|consulted|informed|shown)))\b|` +
		`\b(?:the\s+(?:agent|assistant|model)|you)\s+may\s+(?:now\s+|also\s+)?((?:force-)?(?:` + doing + `)\w*)|\b(?:ok(?:ay)?|allowed|permitted)\s+to\s+((?:force-)?(?:` + doing + `)\w*)|(?m:\b(?:` + doing + `)\w*\b([^.!?:;|\n]{0,60}):[\s*_]*(?:allowed|permitted|authori[sz]ed)\s*[.;,)]?\s*$)|` +
		`(?:\b(?:is|was|are|were|(?:has|have|had)\s+(?:\w+\s+){0,2}been)|['’]s)\s+(?:(?:now|also|already|since|later|then|meanwhile|\w+ly)\s+){0,2}(?:approved|signed[\s-]off|green-?lit|pre-?approved|pre-?cleared|cleared\s+to\s+(?:go|proceed)|authori[sz]ed|agreed(?:\s+(?:to|upon))?|ok(?:ay)?['’]?(?:ed|d))\b|\(\s*agreed\)|(?:[—–\[(✅☑✔]️?\s*)(?:(?:pre-?)?approved(?:[.\])!;|]|(?m:[ \t]*$))|(?:pre-?)?cleared\s+(?:to\s+(?:go|proceed)|for\s+take-?off)\b)`)
	// reviewed matches what others approve than the user, in front of a claim; behind it is
	// reviewedBehind.
	reviewed       = text.Pattern(`(?i)\b(?:` + reviewable + `)(?:[\s,:(]+(?:[#!]?[\d.-]+|\x60[^\x60\n]*\x60|\w+-\d+|that|which|and|it|also|then|now|by|has|have|is|are|was|were|of|for|to|from|in|on|the|this|an?))*[\s*_:,"\x60)-]*$`)
	reviewedBehind = text.Pattern(`(?i)^.{0,20}?\b(?:` + reviewable + `)(?:\s+(?:#?\d|that|which|is|are|was|were|has|have|can|by|in|on|of|and|or|to|for|from|with)|[^\s\w]|\s*$)`)
	// goesOn matches a line that a claim in the item below may begin in.
	goesOn      = text.Pattern(`(?i)\b(?:` + person + `|please|always|now|on|may|can|should|must|to)(?:['’]s)?\W*$|[:,?=>→–—-]\W*$`)
	namesPerson = text.Pattern(`(?i)\b(?:` + person + `)`)
	// byOthers matches who approved it behind a claim.
	byOthers = text.Pattern(`(?i)^\s+(?:in\s+\w+\s+)?by\s+(?:[\w'-]+\s*){1,3}`)
	// foreign matches such claims in other languages: a person and an approval, in any order.
	foreign = text.Pattern(`(?i)(?:` + foreignUser + `|` + foreignCustomer + `)` + ending + gap + `(?:` + foreignApproving + `)` + ending + `|` +
		`(?:` + foreignApproving + `)` + ending + `([^.!?;。！？।\n]{0,12}?)(?:` + foreignUser + `|` + foreignCustomer + `)` + ending + `|\b(?:laut|gemäß|selon|según|secondo|segundo)\s+(?:\p{L}+\s+)?(?:` + foreignUser + `|` + foreignCustomer + `)\s+(?:darf|dürfen|kann|können|on\s+peut|se\s+puede|si\s+può|pode)\b|\b(?:laut|gemäß|selon|según|secondo|segundo)\s+(?:\p{L}+\s+)?(?:` + foreignUser + `|` + foreignCustomer + `)` + gap + `(?:in\s+ordnung|\bok(?:ay)?\b|erlaubt|gestattet|permis|autoris|permitid|autorizad|consentit)\p{L}*|` + foreignLets + `|` + foreignApproved)
	// foreignDenied matches words about a claim in other languages that deny it or put it off.
	foreignDenied = text.Pattern(`(?i)\b(?:fehlt|steht\s+aus|ausstehend|nötig|erforderlich|benötigt|braucht|wartet?|ohne|bevor|bis|falls|wenn|ob|manque|requise?|nécessaire|sans|si\s+(?:l[ae]s?|el|los|l['’]\w+|il|tu|vous|on|usted|no)|avant|falta|pendiente|necesari\w+|sin|antes|cuando|senza|zonder|bez|czeka|pokud|jestli|kun|hvis|jika|tanpa|nếu)\b|(?:^|\s)(?:без|если|нужн\p{L}*|требуется|ждёт|ждет|ожида\p{L}*|якщо|χωρίς|αν|אם|ללא|بدون|إذا|اگر)(?:\s|$)|需要|如果|等待|未经|未經|もし|必要|待ち|하면|필요|หาก|ถ้า|ต้อง`)
	// negated matches a claim that denies itself.
	negated = text.Pattern(`(?i)^(?:nobody|none|nothing|not|never|neither|once|if)\b`)
	// denied matches words within a claim that deny it or put it off.
	denied = text.Pattern(`(?i)\b(?:n['’]a|not|nicht|noch|muss|soll|kein\w*|pas|non|no|n[ãa]o|niet|nog|moet|inte|ikke|nie|jeszcze)\b|henüz|chưa|không|(?:^|\s)(?:не|ещё|ще)\s|没|未|不|まだ|아직`)
	// conditional matches what stands in front of a claim that is none, denied what stands
	// within it, and awaited matches a whole claim that is about the future.
	conditional = text.Pattern(`(?i)(?:\b(?:until|unless|if|whether|unclear|without|pending|await\w*|wait\w*|need\w*|requir\w*|request\w*|ask\w*|must|should|may|might|let|no|not|never|nor|neither|nothing|nobody|none|before|once|when|seek\w*|want\w*|lacks?|missing|subject\s+to|after\s+explicit)\s+(?:for\s+|on\s+|that\s+|explicit\s+|written\s+|an?\s+|any\s+)*(?:the\s+|a\s+)?)$`)
	past        = text.Pattern(`(?i)(?:ed|lit|gave|given|granted|d)$`)
	wanting     = text.Pattern(`(?i)^[^.!?\n]{0,40}\b(?:pending|required|needed|missing|outstanding|awaited)\b`)
	wantingPast = text.Pattern(`(?i)^[\s*_:–—-]*(?:is\s+|still\s+)*(?:pending|required|needed|missing|outstanding|awaited|denied)\b`)
	// mayNot matches a claim and what stands behind it if the user is told to forbid something,
	// toSystems what stands behind a permission for an account.
	mayNot    = text.Pattern(`(?i)\b(?:may|can|could)(?:['’]t\b|\s+(?:not\s+(?:[^o\s]|on[^l\s])|never\b))`)
	toSystems = text.Pattern("(?i)^\\s+(?:to|for|on)\\s+(?:the\\s+)?(?:\\w+\\s+)?(?:roles?|users?|groups?|accounts?|principals?)\\s+(?:[`\"'][\\w.@-]+[`\"']|[\\w.@-]*[-_\\d][\\w.@-]*)")
	// allowed matches a claim of what the user may do, byMachines what users of a program do and what programs
	// do behind a claim, again the subject of a claim about what the one before it is about.
	allowed    = text.Pattern(`(?i)^(?:` + person + `)\s+(?:[\w'’]+\s+){0,4}?(?:is|are|was|were|be|been)\s+(?:\w+\s+)?(?:allowed|permitted|authori[sz]ed|cleared|approved|granted|given|empowered|accepted)$`)
	byMachines = text.Pattern("(?i)^\\s+(?:the\\s+|an?\\s+|their\\s+|all\\s+)?(?:\\w+\\s+)?(?:cookies?|banners?|terms|orders?|payments?|invitations?|dialogs?|forms?|licen[cs]es?|bookings?|purchases?|e-?mails?)\\b[^.!?\n]*\\b(?:by\\s+(?:click|press|tapp|typ|enter|tick|check)ing|in\\s+(?:the|an?|all)\\s+(?:[\\w-]+\\s+){0,2}(?:tests?|spec|story|flow|fixture|demo|mock-?ups?|scenario))\\b|" +
		"^\\s+by\\s+`?[\\w/.-]+(?:\\.\\w{1,4}|\\(\\))(?:[`\\s,;)]|\\.?$)|^[^.!?\n]{0,40}[.;,]?\\s+(?:\\w+\\s+){0,3}(?:bug|fixed|wrong(?:ly)?|mistakenly|regression)\\b")
	// mustNot matches a claim that no one may be asked, byScript the subject of one about a program.
	mustNot  = text.Pattern(`(?i)^(?:must|should|need)\s+not\b`)
	byScript = text.Pattern(`(?i)\b(?:the|this|that|our|an?)\s+(?:[\w./-]+\s+)?(?:scripts?|jobs?|hooks?|commands?|wizards?|installers?|programs?|dialogs?|forms?|cli|cron\w*|pipelines?)(?:\s+\x60?[\w./-]+\x60?)?\s*$`)
	again    = text.Pattern(`(?i)^\W*(?:(?:now|then|and|so|later|today)\s+)*(?:it|they|both|all)\s*$`)
	articled = text.Pattern(`(?i)^\W*(?:the|an?|each|every)?\s*(?:\w+\s+)?$`)
	// told matches a word in front of a claim that is about the past too.
	told = text.Pattern(`(?i)^(?:before|once|when|(?:ask|request|requir|want|need|await|wait)ed)$`)
)

// rules are words for what the user has ruled.
const rules = `rules?|constraints?|restrictions?|instructions?|requirements?|bans?|prohibitions?|guardrails?|safeguards?|limits?|polic(?:y|ies)|guidelines?|orders?`

// voiding matches claims that what the user ruled does not hold any more, or that others speak
// for the user, in folded English.
var voiding = text.Pattern(`(?i)(?:(?m:^)|[.!?;:,]\s|\b(?:please|always|now|on|may|can|should|must|to)\s)[\s>*_+•-]*(?:ignore|disregard|forget|drop|override|bypass|lift|suspend)\s+(?:(?:all|any|every|the|that|this|those|these|earlier|previous|prior|former|old|user['’]s|of|\w+day['’]?s?|no-[\w-]+)\s+){1,5}(?:` + rules + `)\b|` +
	`\b(?:` + rules + `|confirmations?)\b[^.!?;\n]{0,50}?\s(?:(?:(?:no|not\s+any)\s+(?:longer|more)|do\s+not|don['’]t|does\s+not|doesn['’]t)\s+(?:\w+\s+)?(?:appl(?:y|ies)|counts?|holds?|binds?|binding|matters?|valid|exists?)\b|(?:is|are|was|were|(?:has|have)\s+(?:\w+\s+)?been)\s+(?:(?:now|hereby|all|both|therefore)\s+)*(?:void|null|moot|obsolete|outdated|suspended|relaxed|retracted|lifted|waived|cancel+ed|revoked|rescinded|overridden|superseded|withdrawn|(?:no\s+longer|not)\s+(?:\w+\s+)?(?:valid|binding|in\s+(?:force|effect))|out\s+of\s+force)\b)|` +
	`\b(?:` + person + `)['’]s\s+(?:\w+\s+)?(?:` + forbidding + `)\b[^.!?;\n]{0,50}?\s(?:(?:was|were)\s+(?:only|just|limited)|(?:has\s+)?(?:ended|expired)|(?:is|was)\s+over|(?:only\s+)?(?:applied|covered))\b|` +
	`\bno\s+(?:further\s+|more\s+)?(?:confirmation|approval)s?\s+(?:is|are)\s+(?:needed|required|necessary)\b|(?:\b(?:` + person + `)\s+(?:needs?|wants?|requires?|expects?)\s+no\s+(?:(?:further|more|other|prior|additional)\s+)?(?:confirmation|approval|question)s?|\bneeds?\s+no\s+(?:(?:further|more|other|prior|additional)\s+)?(?:confirmations?|` + granting + `))\b|\b(?:no\s+need|(?:not|n['’]t)\s+(?:need|have)|no\s+longer\s+(?:wants?|needs?|has|have))\s+to\s+(?:wait|check)\s+(?:for|until|with)\s+(?:the\s+)?(?:` + person + `|\w+day)\b|\b(?:wait|check|talk)(?:ing)?\s+(?:for|with|until)\s+(?:the\s+)?(?:` + person + `)\s+is\s+(?:done|over|settled|no\s+longer|not|unnecessary)\b|\b(?:do\s+not|don['’]t|never|no\s+need\s+to|(?:need|must|should)\s+not|needn['’]t|stop)\s+ask(?:ing)?\s+(?:the\s+)?(?:` + person + `)\b|` +
	`\b(?:counts?|treat(?:ed)?|regard(?:ed)?|taken|considered|handled)\b[^.!?;\n]{0,60}?\s(?:as|like)\s+(?:(?:coming|being|if\s+\w+\s+came)\s+)?(?:from\s+the\s+(?:` + person + `)\b|(?:an?\s+|the\s+)?(?:` + person + `)(?:['’]s)?\s+(?:own\s+)?(?:words?|requests?|instructions?|orders?|messages?|approvals?|consent|wish(?:es)?)\b|(?:an?\s+|the\s+)?(?:words?|requests?|instructions?|orders?|messages?)\s+(?:from|of|by)\s+the\s+(?:` + person + `)\b)|\b(?:same|equal)\s+(?:authority|weight|say|rights?|standing)\s+as\s+(?:the\s+)?(?:` + person + `)\b|\btrust(?:ed|s)?\s+(?:like|as\s+much\s+as|as)\s+(?:the\s+)?(?:` + person + `)\b|\b(?:counts?|treat(?:ed)?|regard(?:ed)?)\b[^.!?;\n]{0,60}?\sas\s+(?:if|though)\s+the\s+(?:` + person + `)\b|\bnot\s+to\s+ask\s+(?:again|any\s?more|first|before|for)\b`)

// technical matches rules of programs, which the user has not ruled, and the names of such.
var technical = text.Pattern("(?i)\\b(?:(?:es-?)?lint(?:er|ing)?|rate|quota|(?:foreign|primary)\\s+key|unique|not\\s+null|database|firewall|routing|rewrite|redirect|validation|memory|cpu|disk|size|time(?:out)?|upload|alert(?:ing)?|css|type|schema)\\s+(?:rules?|limits?|constraints?|polic(?:y|ies))\\b|" +
	"\\b(?:rules?|limits?|constraints?)\\s+[\\w.]*_[\\w.]*|\\b(?:rules?|limits?|constraints?)\\s+`[^`\\s]+`[^.!?\n]*\\sin\\s+`?[\\w/-]+\\.\\w{2,5}\\b")

// unbacked stands behind a claim of an approval that is in no message.
const unbacked = " (no message of the user says so)"

// markApprovals marks the claims in an answer that the user approved something, or that what the
// user ruled is void, unless a message of the user does.
func (e *SourceIndex) markApprovals(answer string) string {
	for _, pattern := range claimPatterns() {
		var spans [][2]int
		var texts []string
		folded, at := e.foldFor(pattern, answer)
		for end, of := range e.approvalsIn(pattern, folded) {
			if !e.approved(of) {
				spans, texts = append(spans, [2]int{end, end}), append(texts, unbacked)
			}
		}
		answer = text.ReplaceFolded(answer, at, spans, texts)
	}
	return answer
}

// claimPatterns are the patterns of claims.
func claimPatterns() []*text.Regexp { return []*text.Regexp{approvals(), voiding(), foreign()} }

// foldFor returns a text as a pattern of claims reads it: folded, or as it is in other languages,
// with a word for the user in the place of names.
func (e *SourceIndex) foldFor(pattern *text.Regexp, s string) (string, []int) {
	if pattern == foreign() {
		named, at := e.withoutNames(s, nil)
		if at != nil {
			named = strings.ReplaceAll(named, "the user", "usuario ") // as long
		}
		return named, at
	}
	return e.withoutNames(text.Fold(s))
}

// approval is what a claim says was approved; given: that it was told or confirmed, answered:
// that the user answered so, about a question in front of it, voids: that a rule is void.
type approval struct {
	what                   string
	given, answered, voids bool
}

// treated matches a claim that something is treated as the user's.
var treated = text.Pattern(`(?i)^(?:treated|regarded|taken|considered|handled)\b`)

// firstLine returns the beginning of a text, on its line.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s[:min(len(s), 120)], "\n")
	return line
}

// toolsTell matches text in front of a claim that tells which file or tool says so.
var toolsTell = text.Pattern(`(?i)\b(?:note|page|tool|file|comment|log|e?mail|ticket|readme|runbook|handbook|document)s?\s+(?:\w+\s+)?(?:claims?|claimed|says?|said|states?|stated|reads?)\s+(?:that\s+)?(?:the\s+)?$`)

// givingWord matches a claim that may be about a value that the user gave.
var givingWord = text.Pattern(`(?i)confirm|accept|g[ai]ve|provided`)

// answering matches a claim that the user said yes.
var answering = text.Pattern(`(?i)\b(?:said|says|answered|replied|responded)\b|\)$`)

// excluding matches what begins the part of a claim that the user did not approve.
var excluding = text.Pattern(`(?i)\b(?:but|and|though|although)\s+(?:not|never|asked|asks|wants|wanted|told|prefers|preferred|declined|refused|forbade|forbids)\b|,\s*not\b|\bexcept\b|\bwith\s+an?\s+(?:stop|limit|cap|maximum)\b|\bon\s+(?:the\s+)?condition\b|\bprovided\s+that\b|\bas\s+long\s+as\b|\baber\s+nicht\b|\bmais\s+pas\b|\bpero\s+no\b|\bma\s+non\b`)

// firstHalf returns a claim without the part that it says was not approved.
func firstHalf(claim string) string {
	if m := excluding().FindStringIndex(claim); m != nil {
		return claim[:m[0]]
	}
	return claim
}

// lacking matches what a claim says that something is without.
var lacking = text.Pattern(`(?i)\b(?:without|ohne|sans|sin|senza)\s+(?:\pL+\s+)?\pL+`)

// withoutExcluded returns a claim without what it says to be left out and the user refused.
func (e *SourceIndex) withoutExcluded(claim string) string {
	return lacking().ReplaceAllStringFunc(claim, func(part string) string {
		if slices.ContainsFunc(strings.Fields(stemsOf(part)), func(w string) bool { return w != "witho" && !e.refused.has(w) }) {
			return part
		}
		return " "
	})
}

// sentenceBefore returns the last sentence of a text on its last line.
func sentenceBefore(s string) string {
	s = strings.TrimRight(s, " \t")
	s = s[strings.LastIndexByte(s, '\n')+1:]
	return s[lastEndOf(strings.TrimRight(s, ".!?;")):]
}

// approvalsIn yields the claims that a pattern matches in a text and that neither deny nor
// await an approval: where each ends, and what was approved.
func (e *SourceIndex) approvalsIn(pattern *text.Regexp, s string) func(func(int, approval) bool) {
	return func(yield func(int, approval) bool) {
		skipped := 0 // where a claim about what others approve ends
		for _, m := range matchesIn(pattern, s) {
			rest, isPast := s[m[1]:], past().MatchString(s[m[0]:m[1]])
			if strings.HasPrefix(rest, unbacked) || mayNot().MatchString(s[m[0]:min(len(s), m[1]+12)]) || toSystems().MatchString(rest) || wantingPast().MatchString(rest) || !isPast && wanting().MatchString(rest) {
				continue
			}
			start := sentenceStart(s, m[0])
			if c := conditional().FindString(s[start:m[0]]); c != "" && (!isPast || !told().MatchString(strings.Fields(c)[0])) {
				continue
			}
			end := min(m[1]+400, len(s))
			if n := endOfSentence(s[m[1]:end]); n >= 0 {
				end = m[1] + n
			}
			within := " "
			for i := 2; i < len(m); i += 2 { // one of the groups
				if m[i] >= 0 {
					within = " " + s[m[i]:m[i+1]] + " "
				}
			}
			if c := clauseEnds().FindAllStringIndex(within, -1); pattern == foreign() && c != nil { // the verb stands behind its object
				if last := within[c[len(c)-1][1]:]; hasStems(last) {
					within = last
				}
			}
			before, claim := s[start:m[0]], s[m[0]:m[1]]
			by := byOthers().FindString(rest)
			switch named := namesPerson().MatchString(claim + by); {
			case denied().MatchString(within), pattern == approvals() && negated().MatchString(claim):
				continue
			case pattern == foreign() && foreignDenied().MatchString(text.Tail(before, 30)+within+text.Head(s[m[1]:end], 30)):
				continue
			case pattern == foreign() && reviewed().MatchString(before):
				continue
			case pattern == approvals() && !named && (by != "" || reviewed().MatchString(before+within) || reviewedBehind().MatchString(s[m[1]:end]) ||
				again().MatchString(before) && skipped > 0 && !strings.Contains(s[skipped:m[0]], "\n")):
				skipped = m[1]
				continue
			case pattern == approvals() && named && (allowed().MatchString(claim) && articled().MatchString(before) || givingWord().MatchString(claim) && byMachines().MatchString(s[m[1]:end])),
				pattern == voiding() && (mustNot().MatchString(claim) && byScript().MatchString(before) || !named && technical().MatchString(s[start:end]) || treated().MatchString(claim) && byMachines().MatchString(firstLine(rest))):
				continue
			}
			if (isQuotedAt(s, m[0]) || toolsTell().MatchString(before)) && reporting().MatchString(before) && (e.others.share(wordsOf(claim)) == 1 || e.others.share(wordsOf(s[m[0]:end])) == 1) { // told of a tool
				continue
			}
			what := e.withoutExcluded(within + firstHalf(s[m[1]:end]))
			if bare := e.withoutPlannedCode(what); hasStems(bare) {
				what = bare
			}
			if pattern == voiding() { // who voids a rule names it
				what = claim + what
			} else { // no object
				what = agreeable().ReplaceAllString(what, " ")
			}
			if !hasStems(what) { // what is approved stands in front
				if what = before + what; !hasStems(what) && !strings.ContainsAny(s[m[1]:end], "0123456789") {
					what = sentenceBefore(s[:start])
				}
			} else {
				what += " " + before
			}
			if !yield(m[1], approval{what, givingWord().MatchString(claim), answering().MatchString(claim), pattern == voiding()}) {
				return
			}
		}
	}
}

// matchesIn returns the matches of a pattern of claims or orders in a text. Claims in other languages are on one line.
func matchesIn(pattern *text.Regexp, s string) [][]int {
	var out [][]int
	done := 0
	for _, b := range blocksOf(s, pattern != foreign()) {
		from := max(b[0], done)
		for _, m := range pattern.FindAllStringSubmatchIndex(strings.TrimSuffix(s[from:b[1]], "\n"), -1) {
			for i := range m {
				if m[i] >= 0 {
					m[i] += from
				}
			}
			out, done = append(out, m), m[1]
		}
	}
	return out
}

// blocksOf splits a text at the ends of lines that no claim or order goes beyond, since a pattern is run only on the
// blocks with its words. Unless joined, each line is a block; else one holds the lines whose sentence or item goes
// on, and the end of the sentence in front.
func blocksOf(s string, joined bool) [][2]int {
	var out [][2]int
	at, bare := 0, ""
	for line := range strings.Lines(s) {
		start := at
		at += len(line)
		was := bare
		n := len(out)
		if bare = strings.TrimSpace(line); bare == "" && n > 0 {
			bare, out[n-1][1] = was, at
			continue
		}
		switch last := text.Tail(was, 1); {
		case n == 0 || !joined:
			out = append(out, [2]int{start, at})
		case strings.Contains(".!;", last):
			out = append(out, [2]int{strings.LastIndex(s[:start], last), at})
		case isItem(bare) && !goesOn().MatchString(was), bare[0] == '#' && last != ":":
			out = append(out, [2]int{start, at})
		default:
			out[n-1][1] = at
		}
	}
	return out
}

// withoutPlannedCode returns a claim without the commands that the assistant has named, which detail it.
func (e *SourceIndex) withoutPlannedCode(claim string) string {
	spans, ok := inlineCode(claim, 0)
	if !ok {
		return claim
	}
	for _, c := range slices.Backward(spans) {
		if code := claim[c[0]:c[1]]; strings.Contains(code, " ") && e.planned.share(wordsOf(code)) == 1 {
			claim = claim[:c[0]] + " " + claim[c[1]:]
		}
	}
	return claim
}

// hasStems reports whether a text names anything.
func hasStems(s string) bool { return strings.TrimSpace(stemsOf(s)) != "" }
