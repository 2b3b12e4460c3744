package generic

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/tests/tool"
)

// listCase describes a venue with a list, and a sequence of reads of this list.
type listCase struct {
	name string
	// serve responds to a call. rows is the length of the whole list.
	serve func(w http.ResponseWriter, r *http.Request, rows int)
	reads []listRead
}

// listRead is one read of a list.
type listRead struct {
	// after is the time by which the clock advances before the read. rows is the length of the list.
	after time.Duration
	rows  int
	// want contains the names of the expected parameters of each call, without address and credentials. " | " separates calls, and
	// "-" means that a call has no parameters.
	want string
}

func badParameter(w http.ResponseWriter, r *http.Request) {
	answerWith(http.StatusBadRequest, "application/json", `{"success":false,"message":"unknown parameter"}`)(w, r)
}

// servePage sends a page of a list from the requested offset, and the text in rest after the page. The page has at most size rows.
// If the request has a limit, the limit replaces size. A limit above 500 counts as 500.
func servePage(w http.ResponseWriter, r *http.Request, rows, size int, rest string) {
	q := r.URL.Query()
	from, _ := strconv.Atoi(q.Get("offset"))
	if limit, err := strconv.Atoi(q.Get("limit")); err == nil {
		size = min(limit, 500)
	}
	from = min(from, rows)
	listOfUser(w, r, rowsJSON(from, min(from+size, rows)), rest)
}

var listCases = []listCase{
	{
		"refuses undocumented parameters",
		func(w http.ResponseWriter, r *http.Request, rows int) {
			if q := r.URL.Query(); q.Has("limit") || q.Has("offset") || q.Has("cursor") {
				badParameter(w, r)
				return
			}
			listOfUser(w, r, rowsJSON(0, rows), "")
		},
		[]listRead{{0, 53, "-"}, {0, 200, "- | offset"}, {0, 200, "-"}, {0, 10, "-"}, {relearnAfter, 30, "- | offset"}, {0, 30, "-"}},
	},
	{
		"ignores undocumented parameters",
		func(w http.ResponseWriter, r *http.Request, rows int) { listOfUser(w, r, rowsJSON(0, rows), "") },
		[]listRead{{0, 20, "- | offset"}, {0, 200, "-"}, {relearnAfter, 200, "- | offset"}},
	},
	{
		"supports offsets but has long pages",
		func(w http.ResponseWriter, r *http.Request, rows int) { servePage(w, r, rows, 1000, "") },
		[]listRead{{0, 200, "- | offset"}, {0, 100, "-"}, {0, 190, "-"}, {0, 300, "- | offset"}, {0, 200, "-"}},
	},
	{
		"pages by offset",
		func(w http.ResponseWriter, r *http.Request, rows int) { servePage(w, r, rows, 100, "") },
		[]listRead{{0, 99, "-"}, {0, 250, "- | offset | offset"}, {0, 250, "limit | limit offset"}, {0, 120, "limit"}, {0, 600, "limit | limit offset"}, {0, 500, "limit | limit offset"}},
	},
	{
		"sends the number of all rows",
		func(w http.ResponseWriter, r *http.Request, rows int) {
			servePage(w, r, rows, 1000, fmt.Sprintf(`,"count":%d`, rows))
		},
		[]listRead{{0, 200, "- | offset"}, {0, 300, "-"}, {0, 200, "-"}},
	},
	{
		"sends the number of rows of a page, and pages by offset",
		func(w http.ResponseWriter, r *http.Request, rows int) {
			from, _ := strconv.Atoi(r.URL.Query().Get("offset"))
			from = min(from, rows)
			to := min(from+100, rows)
			listOfUser(w, r, rowsJSON(from, to), fmt.Sprintf(`,"count":%d`, to-from))
		},
		[]listRead{{0, 150, "- | offset"}, {0, 100, "limit | limit offset"}, {0, 150, "limit | limit offset"}},
	},
	{
		"sends the number of rows of a page, and pages by cursor",
		func(w http.ResponseWriter, r *http.Request, rows int) {
			q := r.URL.Query()
			if q.Has("limit") || q.Has("offset") {
				badParameter(w, r)
				return
			}
			from, _ := strconv.Atoi(q.Get("cursor"))
			to, next := min(from+100, rows), ""
			if to < rows {
				next = fmt.Sprintf(`,"nextCursor":"%d"`, to)
			}
			listOfUser(w, r, rowsJSON(from, to), fmt.Sprintf(`,"count":%d%s`, to-from, next))
		},
		[]listRead{{0, 50, "- | offset"}, {0, 150, "- | cursor"}, {0, 150, "limit | - | cursor"}, {0, 100, "-"}, {0, 150, "- | cursor"}},
	},
}

// TestWholeListsLearnParameters checks which parameters the client sends, and that it returns all rows. The venues accept different
// parameters.
func TestWholeListsLearnParameters(t *testing.T) {
	for _, test := range listCases {
		for name, read := range wholeLists {
			t.Run(test.name+"/"+name, func(t *testing.T) {
				rows := 0
				v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) { test.serve(w, r, rows) }))
				clock := tool.NewClock(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))
				c := v.client(t, func(cfg *Config) { cfg.Clock = clock })
				asked := 0
				for i, step := range test.reads {
					clock.Advance(step.after)
					rows = step.rows
					got, err := read(asUser(t), c)
					if err != nil || got != rows {
						t.Fatalf("read %d returned %d rows and the error %v, want %d rows", i, got, err, rows)
					}
					calls := v.parameters(asked)
					asked += len(calls)
					assertEqual(t, fmt.Sprint("read ", i, ": ", strings.Join(calls, " | ")), fmt.Sprint("read ", i, ": ", step.want))
				}
			})
		}
	}
}

// parameters returns the parameter names in the query of each request, except the first n requests. The text of an empty query is
// "-".
func (v *fakeVenue) parameters(n int) (calls []string) {
	for _, query := range v.queries()[n:] {
		names := strings.Split(cmp.Or(query, "-"), "&")
		for i, parameter := range names {
			names[i], _, _ = strings.Cut(parameter, "=")
		}
		calls = append(calls, strings.Join(names, " "))
	}
	return calls
}

// TestListsThatMayBeCut reads a list of 50 rows whose response does not say whether more rows follow. If the call for further rows
// fails, the read must fail.
func TestListsThatMayBeCut(t *testing.T) {
	for name, furtherRows := range map[string]http.HandlerFunc{
		"the venue fails":       answerWith(http.StatusInternalServerError, "application/json", `{}`),
		"the venue is busy":     answerWith(http.StatusTooManyRequests, "application/json", `{}`),
		"the error has no code": answer(`{"success":false}`),
		"the form is unknown":   answer(`{"rows":"none"}`),
	} {
		t.Run(name, func(t *testing.T) {
			readBoth(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("offset") {
					furtherRows(w, r)
					return
				}
				listOfUser(w, r, rowsJSON(0, 50), "")
			}, func(t *testing.T, _ *fakeVenue, rows int, err error) {
				if err == nil || rows > 0 || market.CodeOf(err) == market.CodeInternal {
					t.Errorf("the read returned %d rows and the error %v, want no rows and an error of the venue", rows, err)
				}
			})
		})
	}
}
