package backlog

import (
	"encoding/json"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// support is a conversation between a customer and an agent with tools.
type support struct {
	*writer
	topic string
	// record is the booking or order that the conversation is about.
	record string
	turns  int
}

func newSupport(w *writer, topic string) *support {
	for _, fact := range []string{"first", "last", "today", "pnr", "order", "airline", "payment"} {
		w.fix(fact, "~"+fact+"~")
	}
	return &support{writer: w, topic: topic}
}

func (s *support) system() string {
	return s.line("system_"+s.topic) + "\n\nHandbook:\n" + s.until(s.r.IntN(900), "article", "\n")
}

// turn is a question, the look-ups it takes, and the answer.
func (s *support) turn() {
	list := s.words["talk_"+s.topic]
	if s.turns++; s.turns > 1 && s.r.IntN(3) == 0 {
		list = s.words["follow_"+s.topic]
	}
	question, answer, _ := strings.Cut(pick(s.r, list...), "\n>>\n")
	s.reset()
	s.user(s.fill(question))
	scope := s.scope
	for x := s.r.Float64(); x > 0.35; x -= 0.4 {
		n := 1
		if s.r.Float64() < 0.15 {
			n = 2 + s.r.IntN(2)
		}
		s.batch(n, "", "")
	}
	s.scope = scope
	s.assistant(s.fill(answer))
}

// lookup is one tool call with its result.
func (s *support) lookup() (chat.ToolCall, string) {
	if s.r.Float64() < 0.04 {
		return s.toolCall("get_customer", object("email", s.fill("user~n4~@example.com"))),
			s.fill(`{"error":"upstream ~service~ answered 503","retry_after_s":~n1~,"request_id":"~hex12~"}`)
	}
	if s.r.Float64() < 0.15 {
		return s.toolCall("search_handbook", object("query", s.fill("~adjective~ ~noun~ ~verb~"))),
			s.until(s.size(900), "article", "\n\n")
	}
	if s.topic == "airline" {
		if s.r.Float64() < 0.5 {
			return s.toolCall("get_booking", object("reference", s.fill("~pnr~"))), s.current(s.booking)
		}
		return s.toolCall("search_flights", object("from", s.fill("~iata~"), "to", s.fill("~iata~"), "date", s.fill("~date~"))),
			s.records(s.size(1100), `{"flight":"~flight~","from":"~iata~","to":"~iata~","departs":"~date~T~clock~","arrives":"~date~T~clock~","aircraft":"~aircraft~","cabin":"~cabin~","fare":"~fare~","seats":~n1~,"price":{"amount":~bigmoney~,"currency":"EUR"}}`)
	}
	if s.r.Float64() < 0.3 {
		return s.toolCall("check_stock", object("product", s.fill("~product~"), "colour", s.fill("~colour~"))),
			s.records(s.size(500), `{"sku":"~sku~","colour":"~colour~","size":"~dim~","warehouse":"~city~","available":~n2~,"reserved":~n1~}`)
	}
	return s.toolCall("get_order", object("order_id", s.fill("~order~"))), s.current(s.purchase)
}

// current is the record as a look-up shows it now: mostly unchanged.
func (s *support) current(look func() string) string {
	if s.record == "" || s.r.Float64() < 0.3 {
		s.record = look()
	}
	return s.record
}

func (s *support) purchase() string {
	return s.fill(`{"order_id":"~order~","customer":"~first~ ~last~","status":"~orderstatus~","placed_at":"~date~T~clock~","address":{"street":"~street~ ~n2~","city":"~city~","postcode":"~n5~"},"payment":"~payment~","items":`) +
		s.records(s.size(700), `{"sku":"~sku~","name":"~product~","options":{"colour":"~colour~","size":"~dim~"},"quantity":1,"price":~money~,"item_id":"~n10~"}`) +
		s.fill(`,"shipment":{"carrier":"~shipper~","tracking":"~n10~","events":`) +
		s.records(s.size(300), `{"at":"~date~T~clock~","place":"~city~","status":"~orderstatus~"}`) + "}}"
}

func (s *support) booking() string {
	return s.fill(`{"reference":"~pnr~","status":"confirmed","fare":"~fare~","paid":{"amount":~bigmoney~,"currency":"EUR","with":"~payment~"},"passengers":[{"name":"~first~ ~last~","born":"19~n2~-0~dayz~-1~day~","tier":"regular"}],"segments":`) +
		s.records(s.size(400), `{"flight":"~flight~","from":"~iata~","to":"~iata~","departs":"~date~T~clock~","cabin":"~cabin~","seat":"~n2~~seat~","status":"confirmed"}`) +
		s.fill(`,"bags":[{"passenger":1,"pieces":~n1~,"weight_kg":23}]}`)
}

// records is a JSON array of filled templates of about a size.
func (s *support) records(size int, template string) string {
	var b strings.Builder
	b.WriteByte('[')
	for b.Len() == 1 || b.Len() < size {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		s.reset()
		s.expand(&b, template)
	}
	b.WriteByte(']')
	return b.String()
}

// object is a JSON object of strings, its keys in the given order.
func object(pairs ...string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		for k, s := range pairs[i : i+2] {
			text, err := json.Marshal(s)
			if err != nil { // strings always marshal
				panic(err)
			}
			b.Write(text)
			if k == 0 {
				b.WriteByte(':')
			}
		}
	}
	b.WriteByte('}')
	return b.String()
}
