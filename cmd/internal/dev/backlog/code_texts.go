package backlog

// goCode are functions of made-up Go files.
const goCode = `
== code_go
// ~verb~~Noun~ looks up the ~noun~ with the given id. It returns ErrNotFound when there
// is none, and leaves a ~adjective~ ~noun~ as it is.
func (s *Store) ~verb~~Noun~(ctx context.Context, id string) (*~Noun~, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	~noun~, ok := s.~noun~s[id]
	if !ok {
		return nil, fmt.Errorf("~verb~ ~noun~ %s: %w", id, ErrNotFound)
	}
	if ~noun~.State == State~Adjective~ {
		s.log.Debug("~noun~ is ~adjective~", "~noun~_id", id)
		return ~noun~, nil
	}
	~noun~.UpdatedAt = s.now()
	~noun~.Attempts++
	if err := s.backend.~Verb~(ctx, ~noun~); err != nil {
		return nil, fmt.Errorf("~verb~ ~noun~ %s: %w", id, err)
	}
	return ~noun~, nil
}
--
// ~Noun~ is one ~noun~ of the ~service~ service.
type ~Noun~ struct {
	ID        string
	~Noun~ID  string
	Amount    int64
	State     State
	Attempts  int
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Valid reports whether the ~noun~ can be stored.
func (x ~Noun~) Valid() bool {
	return x.ID != "" && x.Amount >= 0 && x.Attempts < max~Noun~Attempts
}
--
func (w *Worker) ~verb~Loop(ctx context.Context) error {
	t := time.NewTicker(w.interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		batch, err := w.store.~Adjective~~Noun~s(ctx, ~n3~)
		if err != nil {
			w.log.Error("list ~adjective~ ~noun~s", "error", err)
			continue
		}
		for _, x := range batch {
			if err := w.~verb~(ctx, x); err != nil {
				w.failed.Add(1)
			}
		}
	}
}
--
const query~Verb~~Noun~ = "update ~noun~s set state = $2, updated_at = now() where id = $1 and state <> $2"

func parse~Noun~(line string) (~Noun~, error) {
	fields := strings.Split(line, ";")
	if len(fields) != ~small~ {
		return ~Noun~{}, fmt.Errorf("~noun~: %d fields, want ~small~", len(fields))
	}
	amount, err := strconv.ParseInt(strings.TrimSpace(fields[1]), 10, 64)
	if err != nil {
		return ~Noun~{}, fmt.Errorf("~noun~ %s: amount: %w", fields[0], err)
	}
	return ~Noun~{ID: fields[0], Amount: amount, State: State~Adjective~}, nil
}
--
func Test~Verb~~Noun~(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   ~Noun~
		want State
	}{
		"a ~adjective~ ~noun~ stays":     {~Noun~{ID: "~n3~", Amount: ~n2~}, State~Adjective~},
		"a ~adjective~ ~noun~ is closed": {~Noun~{ID: "~n3~", Amount: ~n3~}, StateClosed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newStore(t).~verb~~Noun~(t.Context(), tc.in.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got.State != tc.want {
				t.Errorf("got %s, want %s", got.State, tc.want)
			}
		})
	}
}
`

// pythonCode are functions of made-up Python files.
const pythonCode = `
== code_python
    def ~verb~_~noun~(self, ~noun~_id: str, *, deadline: float = ~n1~.0) -> ~Noun~:
        """Do one ~verb~ of the ~noun~ with the given id.

        Raises NotFound when there is none. A ~adjective~ ~noun~ is returned as it is.
        """
        with self._lock:
            ~noun~ = self._~noun~s.get(~noun~_id)
            if ~noun~ is None:
                raise NotFound(f"~noun~ {~noun~_id}")
            if ~noun~.state == "~adjective~":
                logger.debug("~noun~ %s is ~adjective~", ~noun~_id)
                return ~noun~
            ~noun~.attempts += 1
            ~noun~.updated_at = self._now()
            self._backend.~verb~(~noun~, timeout=deadline)
            return ~noun~
--
@dataclass(frozen=True, slots=True)
class ~Noun~:
    """One ~noun~ of the ~service~ service."""

    id: str
    amount: int
    state: str = "~adjective~"
    attempts: int = 0
    tags: tuple[str, ...] = ()

    def is_valid(self) -> bool:
        return bool(self.id) and self.amount >= 0 and self.attempts < ~small~
--
def ~verb~_~noun~s(rows: Iterable[dict[str, Any]], limit: int = ~n3~) -> list[~Noun~]:
    result = []
    for number, row in enumerate(rows, start=1):
        if len(result) >= limit:
            break
        try:
            result.append(~Noun~(id=row["~noun~_id"], amount=int(row["amount"])))
        except (KeyError, ValueError) as err:
            logger.warning("row %d is ~adjective~: %s", number, err)
    return result
--
async def ~verb~_loop(store: Store, interval: float) -> None:
    while True:
        batch = await store.~adjective~_~noun~s(limit=~n3~)
        for ~noun~ in batch:
            try:
                await store.~verb~(~noun~)
            except ~Service~Error:
                FAILED.inc()
                logger.exception("~verb~ ~noun~ %s", ~noun~.id)
        await asyncio.sleep(interval)
--
@pytest.mark.parametrize(
    ("amount", "state"),
    [(~n2~, "~adjective~"), (0, "~adjective~"), (~n4~, "closed")],
)
def test_~verb~_~noun~(store: Store, amount: int, state: str) -> None:
    ~noun~ = store.add(~Noun~(id="~n4~", amount=amount))
    assert store.~verb~_~noun~(~noun~.id).state == state
`
