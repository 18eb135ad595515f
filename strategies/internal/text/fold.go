package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalikes maps letters and brackets to the ASCII characters that they look like. Forms
// of compatibility, such as full-width letters, are decomposed instead.
var lookalikes = lookalikeTable(`
	аa бb вb еe ѕs іi їi јj кk мm нh оo рp сc тt уy хx һh ԁd ԛq ԝw ѵv ӏl гr пn ɡg ɑa ıi ɩi ȷj αa βb εe ηn ιi κk νv οo ρp σo τt υu
	χx γy ζz ωw օo սu ոn հh ցg գq ӕa æa АA ВB ЕE ЅS ІI ЈJ КK МM НH ОO РP СC ТT УY ХX ԜW ԚQ ѴV ӀI ԌG ҮY ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN
	ΟO ΡP ΤT ΥY ΧX ՏS ՍU ᎡR ᑭP ᑌU ᗪD ᗩA ᖇR ᗰM ᑎN ɛe ɾr ɴn ꓑP ꓣR ꓝF ꓟM ꓠN ꓦV ꓬY ꓚC ꓓD ꓴU ꓖG ꓗK ᎪA ᏴB ᏟC ᎠD ᎬE ᏀG ᎻH ᎫJ ᏦK ᏞL ᎷM ᏢP
	ᏒR ᏚS ᎢT ᏙV ᎳW ᏃZ ᴀa ʙb ᴄc ᴅd ᴇe ꜰf ɢg ʜh ɪi ᴊj ᴋk ʟl ᴍm ᴏo ᴘp ʀr ꜱs ᴛt ᴜu ᴠv ᴡw ʏy ᴢz øo łl đd ħh ŧt ØO ŁL ĐD ꓮA ꓰE ꓲI ꓳO ꓢS
	ꓔT 【[ 】] 〔[ 〕] 〖[ 〗] ⟦[ ⟧] ⁅[ ⁆] ❲[ ❳] 〘[ 〙] 〚[ 〛] 「[ 」] ⟨< ⟩> 〈< 〉> ‹< ›> ❮< ❯> ⁄/ ∕/ ǀ| ∣| │| ❘| ꞉: ∶: ː: ։: ܃: ：:
`)

// letterSigns begin the signs of A to Z that are not decomposed: in black circles and squares,
// and those of which flags are made.
var letterSigns = []rune{'🅐', '🅰', '🇦'}

func lookalikeTable(pairs string) map[rune]byte {
	table := map[rune]byte{'\u2800': ' '}
	for p := range strings.FieldsSeq(pairs) {
		r, size := utf8.DecodeRuneInString(p)
		table[r] = p[size]
	}
	return table
}

// Fold returns s with characters that look like ASCII ones replaced by these, and without
// accents and hidden characters. at holds for each byte of the result, and for its end, the
// index in s of the character that it stands for; it is nil if both are the same.
func Fold(s string) (folded string, at []int) {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return s, nil
	}
	var b strings.Builder
	b.Grow(len(s))
	at = make([]int, 0, len(s)+1)
	put := func(i int, p string) {
		b.WriteString(p)
		for range p {
			at = append(at, i)
		}
		for range len(p) - utf8.RuneCountInString(p) {
			at = append(at, i)
		}
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r < utf8.RuneSelf, r == utf8.RuneError, unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana):
			put(i, s[i:i+size])
		default:
			put(i, foldRune(r))
		}
		i += size
	}
	return b.String(), append(at, len(s))
}

// foldRune returns the ASCII characters that a character looks like, "" if it is an accent
// or hidden, or else the character itself.
func foldRune(r rune) string {
	if c, ok := lookalikes[r]; ok {
		return string(rune(c))
	}
	for _, first := range letterSigns {
		if r >= first && r < first+26 {
			return string('A' + r - first)
		}
	}
	if mayHide(r) || unicode.Is(unicode.M, r) {
		return ""
	}
	var b strings.Builder
	for _, p := range norm.NFKD.String(string(r)) {
		c, ok := lookalikes[p]
		switch {
		case p < utf8.RuneSelf:
			b.WriteRune(p)
		case ok:
			b.WriteByte(c)
		case !unicode.Is(unicode.M, p):
			return string(r)
		}
	}
	return b.String()
}

// ReplaceFolded returns s with ranges of its folded form, as Fold returned it, replaced by
// texts. The ranges are in order and do not overlap.
func ReplaceFolded(s string, at []int, ranges [][2]int, texts []string) string {
	if len(ranges) == 0 {
		return s
	}
	original := func(i int) int {
		if at == nil {
			return i
		}
		return at[i]
	}
	var b strings.Builder
	done := 0
	for i, r := range ranges {
		start, end := original(r[0]), original(r[1])
		if start < done {
			continue
		}
		for k := r[1]; end == start && r[0] < r[1]; k++ { // within one character
			end = original(k + 1)
		}
		b.WriteString(s[done:start] + texts[i])
		done = max(start, end)
	}
	b.WriteString(s[done:])
	return b.String()
}
