package plain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Venue calls the venue at a base URL.
type Venue struct {
	base   string
	client *http.Client
}

// NewVenue returns a client that keeps up to 512 idle connections open. The default of net/http is two. With two connections, the
// benchmark would mainly measure TCP handshakes.
func NewVenue(base string) *Venue {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 512
	return &Venue{base, &http.Client{Transport: transport}}
}

func (v *Venue) get(ctx context.Context, path string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := v.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func (v *Venue) positions(ctx context.Context, address string) (*PositionConnection, error) {
	var out PositionConnection
	return &out, v.get(ctx, "/api/user/positions", url.Values{"address": {address}, "credentials": {requestOf(ctx).credentials}}, &out)
}

func (v *Venue) markets(ctx context.Context, ids []string) ([]*Market, error) {
	var out struct{ Markets []*Market }
	err := v.get(ctx, "/api/exchange/market-details", url.Values{"ids": {strings.Join(ids, ",")}}, &out)
	return out.Markets, err
}

func (v *Venue) prices(ctx context.Context, tokenIDs []string) ([]*TokenPrice, error) {
	var out struct{ Prices []*TokenPrice }
	err := v.get(ctx, "/api/exchange/prices", url.Values{"tokenIds": {strings.Join(tokenIDs, ",")}}, &out)
	return out.Prices, err
}

func (v *Venue) orderbook(ctx context.Context, tokenID string, depth int) (*Orderbook, error) {
	var out Orderbook
	return &out, v.get(ctx, "/api/exchange/orderbook", url.Values{"tokenId": {tokenID}, "depth": {strconv.Itoa(depth)}}, &out)
}
