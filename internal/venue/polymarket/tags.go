package polymarket

import (
	"context"
	"sync"
	"time"

	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

const (
	tagLife = 24 * time.Hour
	maxTags = 2000
)

// tagIDs contains the ids of tags by slug. It is safe for concurrent use.
type tagIDs struct {
	now func() time.Time

	mu  sync.Mutex
	ids map[string]tagID
}

// tagID contains the id of a tag. If Polymarket does not know the slug, the id is empty.
type tagID struct {
	id    string
	until time.Time
}

// get returns the id of a slug. If tagIDs does not contain the slug, or the entry is older than tagLife, ok is false.
func (t *tagIDs) get(slug string) (id string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.ids[slug]
	return known.id, ok && t.now().Before(known.until)
}

// put stores the id of a slug. If tagIDs already contains maxTags ids, put first removes all ids.
func (t *tagIDs) put(slug, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ids) >= maxTags {
		clear(t.ids)
	}
	t.ids[slug] = tagID{id, t.now().Add(tagLife)}
}

// tagID returns the id of a tag by the tag's slug or label, and whether Polymarket knows the tag. A search without a tag has no id.
func (d *Driver) tagID(ctx context.Context, call upstream.Call, tag string) (id string, known bool, err error) {
	const e = upstream.EndpointSearch
	slug := slugOf(tag)
	if slug == "" {
		return "", tag == "", nil
	}
	if id, ok := d.tags.get(slug); ok {
		return id, id != "", nil
	}
	payload, err := d.gamma.Get(ctx, call, &rest.Request{Endpoint: e, Path: pathTag + slug, Keys: 1})
	if err = rest.NilIfNotFound(err); err != nil {
		return "", false, err
	}
	id, ok := fieldID.Of(payload).ID()
	if !payload.IsNull() && (!ok || id == "" || !fieldSlug.Of(payload).Is(slug)) {
		return "", false, rest.UnknownForm(e, "no tag with the requested slug")
	}
	d.tags.put(slug, id)
	return id, id != "", nil
}
