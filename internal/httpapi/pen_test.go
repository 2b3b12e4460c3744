package httpapi

import (
	"net/http/httptest"
	"testing"
)

func TestNothingIsWrittenAfterTheHandlerHasReturned(t *testing.T) {
	rec := httptest.NewRecorder()
	p := &pen{ResponseWriter: rec}
	if _, err := p.Write([]byte("in time")); err != nil {
		t.Fatal(err)
	}
	p.Flush()
	if !rec.Flushed {
		t.Error("the response was not flushed")
	}
	p.lay()
	rec.Flushed = false
	if _, err := p.Write([]byte(" and late")); err == nil {
		t.Error("a late write is no error")
	}
	p.Flush()
	if rec.Flushed || rec.Body.String() != "in time" {
		t.Errorf("a late write has reached the response: %q", rec.Body)
	}
}
