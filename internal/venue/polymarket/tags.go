package polymarket

import (
	"context"
	"time"

	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

const (
	tagLife = 24 * time.Hour
	maxTags = 2000
)

// tagID contains the id of a tag. If Polymarket does not know the slug, the id is empty.
type tagID struct {
	id    string
	until time.Time
}

// tagID returns the id of a tag by the tag's slug or label, and whether Polymarket knows the tag. A search without a tag has no id.
func (d *Driver) tagID(ctx context.Context, call upstream.Call, tag string) (id string, known bool, err error) {
	const e = upstream.EndpointSearch
	slug := slugOf(tag)
	if slug == "" {
		return "", tag == "", nil
	}
	if t, ok := d.tags.Get(slug); ok && d.gamma.Now().Before(t.until) {
		return t.id, t.id != "", nil
	}
	payload, err := d.gamma.Get(ctx, call, &rest.Request{Endpoint: e, Path: pathTag + slug, Keys: 1})
	if err = rest.NilIfNotFound(err); err != nil {
		return "", false, err
	}
	id, ok := fieldID.Of(payload).ID()
	if !payload.IsNull() && (!ok || id == "" || !wire.FieldSlug.Of(payload).Is(slug)) {
		return "", false, rest.UnknownForm(e, "no tag with the requested slug")
	}
	d.tags.Add(slug, tagID{id, d.gamma.Now().Add(tagLife)})
	return id, id != "", nil
}
