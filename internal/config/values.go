package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Bytes is a size in bytes. Its text is a number with or without a unit, such as 512, 64KiB, 8MiB or 1GiB. The units kB (or
// KB), MB and GB are powers of 1000.
type Bytes int64

var units = []struct {
	name string
	size int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// String returns the size in the greatest binary unit that divides it. If no unit divides the size, String returns the number of
// bytes. The text of AutoBytes is Auto.
func (b Bytes) String() string {
	if b == AutoBytes {
		return Auto
	}
	for _, u := range units[:3] {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// List is a list of texts, written with commas between them.
type List []string

// String returns the list with commas between its elements.
func (l List) String() string { return strings.Join(l, ",") }

func parseBytes(s string) (Bytes, error) {
	size := int64(1)
	for _, u := range units {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			s, size = strings.TrimSpace(number), u.size
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/size {
		return 0, errors.New("not a size")
	}
	return Bytes(n * size), nil
}

func parseInt[T int | int64](s string) (T, error) {
	n, err := strconv.ParseInt(s, 10, strconv.IntSize)
	return T(n), err
}

// check parses and describes the values of a Go type. tag is the tag of the struct field.
type check struct {
	read  func(tag *kong.Tag, s string) (any, error)
	want  func(tag *kong.Tag) string // describes valid values at the end of an error
	takes func(tag *kong.Tag) string // describes valid values in the tables of docs/configuration.md
}

// kind checks a text, or each element of a list. want and takes describe valid values. The functions check.want and check.takes
// return these descriptions.
type kind struct {
	check       func(s string) error
	want, takes string
}

// kinds has a kind for each value of the struct tag `check:"..."`.
var kinds = map[string]kind{
	"listen": {checkListen, "a host and a port from 0 to 65535, such as 127.0.0.1:8080, [::1]:8080 or :8080", "host:port"},
	"admin":  {checkAdmin, "a host and a port from 0 to 65535, such as 127.0.0.1:9091, or off", "host:port, or off"},
	"venue": {checkVenue, "an http:// or https:// URL with a host and without user info, query and fragment, or nothing",
		"http:// or https:// URL"},
	"redis":    {checkRedis, "a redis://, rediss:// or unix:// URL, or nothing", "redis://, rediss:// or unix:// URL"},
	"stream":   {checkStream, "a ws:// or wss:// URL with a host and without fragment, or nothing", "ws:// or wss:// URL"},
	"currency": {checkCurrency, "2 to 12 upper-case letters and digits, such as USD or USDC, or nothing", "upper-case letters and digits"},
	"text":     {checkNothing, "a text", "text"},
	"file":     {checkNothing, "the path of a file, or nothing", "path"},
	"origins":  {checkOrigin, "http:// or https:// URLs of hosts and nothing more, such as https://app.example.com, or *", "http:// or https:// URLs of hosts, or *"},
	"headers":  {checkHeader, "names of headers, such as X-B3-TraceId, or *", "names of headers, or *"},
	"hosts":    {checkHost, "names of hosts without a port, such as odds.example.com, or *", "names of hosts, or *"},
	"networks": {checkNetwork, "addresses and networks, such as 10.0.0.0/8, fd00::1", "addresses and networks"},
	"settings": {checkSetting, "settings with a colon and a value, such as spreads:books", "settings, each with a colon and a value"},
}

// kindOf returns the kind for a field with the struct tag check or oneof. For a oneof, choice is the first word of the description,
// such as "one" in "one of text, json".
func kindOf(tag *kong.Tag, choice string) kind {
	if known, ok := kinds[tag.Get("check")]; ok {
		return known
	}
	oneof := strings.Split(tag.Get("oneof"), ",")
	return kind{takes: strings.Join(oneof, ", "), want: choice + " of " + strings.Join(oneof, ", "), check: func(s string) error {
		if tag.Get("oneof") == "" || slices.Contains(oneof, s) {
			return nil
		}
		return errors.New("is not among the choices")
	}}
}

// rangeCheck returns a check for values from the struct tag min to the struct tag max. The check parses values with read. noun is
// the word for a value in errors.
func rangeCheck[T cmp.Ordered](noun string, read func(string) (T, error)) check {
	return check{
		read: func(tag *kong.Tag, s string) (any, error) {
			v, err := read(s)
			if err != nil {
				return nil, errors.New("cannot be read")
			}
			lo, err1 := read(tag.Get("min"))
			hi, err2 := read(tag.Get("max"))
			switch {
			case err1 != nil || err2 != nil:
				return nil, fmt.Errorf("has invalid bounds in its struct tag: min %q, max %q", tag.Get("min"), tag.Get("max"))
			case v < lo:
				return nil, errors.New("is too small")
			case v > hi:
				return nil, errors.New("is too large")
			}
			return v, nil
		},
		want: func(tag *kong.Tag) string {
			return fmt.Sprintf("%s from %s to %s", noun, tag.Get("min"), tag.Get("max"))
		},
		takes: func(tag *kong.Tag) string { return tag.Get("min") + " to " + tag.Get("max") },
	}
}

// orAuto returns a check that also accepts Auto for a field with the struct tag auto. The value is AutoBytes.
func orAuto(c check) check {
	describe := func(text func(*kong.Tag) string, more string) func(*kong.Tag) string {
		return func(tag *kong.Tag) string {
			if tag.Has("auto") {
				return text(tag) + more
			}
			return text(tag)
		}
	}
	read := func(tag *kong.Tag, s string) (any, error) {
		if tag.Has("auto") && s == Auto {
			return AutoBytes, nil
		}
		return c.read(tag, s)
	}
	return check{read, describe(c.want, ", or auto"), describe(c.takes, ", or auto")}
}

var (
	integers  = rangeCheck("a number", parseInt[int])
	longs     = rangeCheck("a number", parseInt[int64])
	durations = rangeCheck("a duration with its unit (250ms, 1.5s, 2m)", time.ParseDuration)
	sizes     = orAuto(rangeCheck("a size (65536, 64KiB, 8MiB)", parseBytes))
	booleans  = check{readBool, wantBool, wantBool}
	logLevels = check{readLevel, wantText, takesText}
	texts     = check{readText, wantText, takesText}
	lists     = check{readList, wantList, takesText}
)

func wantBool(*kong.Tag) string      { return "true or false" }
func wantText(tag *kong.Tag) string  { return kindOf(tag, "one").want }
func wantList(tag *kong.Tag) string  { return kindOf(tag, "some").want }
func takesText(tag *kong.Tag) string { return kindOf(tag, "").takes }

func readBool(_ *kong.Tag, s string) (any, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return nil, errors.New("cannot be read")
	}
	return b, nil
}

func readLevel(tag *kong.Tag, s string) (any, error) {
	if _, err := readText(tag, s); err != nil {
		return nil, err
	}
	var l slog.Level
	err := l.UnmarshalText([]byte(s))
	return l, err
}

// readText checks a string by the struct tag check or oneof of its field. If the field has neither tag, every string is valid. If
// the tag check is admin, the empty string means Off.
func readText(tag *kong.Tag, s string) (any, error) {
	if s == "" && tag.Get("check") == "admin" {
		return Off, nil
	}
	return s, kindOf(tag, "").check(s)
}

// readList parses a list and checks its elements by the struct tag check or oneof of the field. It skips empty elements.
func readList(tag *kong.Tag, s string) (any, error) {
	var list List
	for element := range strings.SplitSeq(s, ",") {
		if element = strings.TrimSpace(element); element == "" {
			continue
		}
		if err := kindOf(tag, "").check(element); err != nil {
			return nil, err
		}
		list = append(list, element)
	}
	return list, nil
}

func checkNothing(string) error { return nil }

func checkListen(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("is not host:port")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("has no valid port")
	}
	return nil
}

func checkAdmin(s string) error {
	if s == Off {
		return nil
	}
	return checkListen(s)
}

func checkCurrency(s string) error {
	if s == "" {
		return nil
	}
	if len(s) < 2 || len(s) > 12 {
		return errors.New("is too short or too long")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
		return errors.New("has other characters")
	}
	return nil
}

func checkVenue(s string) error {
	u, err := readURL(s, "http", "https")
	switch {
	case err != nil || u == nil:
		return err
	case u.User != nil:
		return errors.New("has user info")
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("has a query")
	}
	return nil
}

func checkRedis(s string) error {
	if u, err := url.Parse(s); err == nil && u.Scheme == "unix" {
		switch {
		case u.Host != "" || u.Path == "":
			return errors.New("has no path of a socket")
		case u.Fragment != "":
			return errors.New("has a fragment")
		}
		return nil
	}
	_, err := readURL(s, "redis", "rediss", "valkey", "valkeys")
	return err
}

func checkStream(s string) error {
	_, err := readURL(s, "ws", "wss")
	return err
}

func checkOrigin(s string) error {
	if s == "*" {
		return nil
	}
	u, err := readURL(s, "http", "https")
	switch {
	case err != nil:
		return err
	case u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery:
		return errors.New("has more than scheme, host and port")
	case strings.Contains(u.Host, "*"):
		return errors.New("has a * in a host")
	}
	return nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

func checkHost(s string) error {
	if s != "*" && (len(s) > 253 || !hostName.MatchString(s)) {
		return errors.New("is no name of a host")
	}
	return nil
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func checkHeader(s string) error {
	if !headerName.MatchString(s) {
		return errors.New("is no name of a header")
	}
	return nil
}

var settingForm = regexp.MustCompile(`^[a-z-]+:[A-Za-z0-9_.-]+$`)

// checkSetting checks the form of an element of --venue-table. The driver knows the settings and their values.
func checkSetting(s string) error {
	if !settingForm.MatchString(s) {
		return errors.New("is no setting with a value")
	}
	return nil
}

func checkNetwork(s string) error {
	if _, err := netip.ParseAddr(s); err == nil {
		return nil
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return errors.New("is no address or network")
	case p.Bits() == 0:
		return errors.New("trusts everybody")
	}
	return nil
}

// readURL parses and checks a URL. It returns nil for an empty text. Its errors do not quote the URL, which may contain a secret.
func readURL(s string, schemes ...string) (*url.URL, error) {
	if s == "" {
		return nil, nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("is not a URL")
	}
	switch {
	case !slices.Contains(schemes, u.Scheme):
		return nil, errors.New("has the wrong scheme")
	case u.Hostname() == "":
		return nil, errors.New("has no host")
	case u.Fragment != "":
		return nil, errors.New("has a fragment")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("has no valid port")
		}
	}
	return u, nil
}

// redactURL returns a URL without user info, query and fragment. It hides a text that is not a URL, because the text may
// contain a secret anywhere.
func redactURL(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" {
		return "[not a URL]"
	}
	if u.User == nil && u.RawQuery == "" && u.Fragment == "" {
		return s
	}
	clean := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return clean.String()
}
