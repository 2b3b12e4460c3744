package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/alecthomas/kong"
)

const prefix = "ODDSGRAPH_"

// environment is the value in Config.origins for values from environment variables.
const environment = "environment"

// grammar is the struct from which kong reads the flags and the subcommands.
type grammar struct {
	Config `kong:"embed"`

	Serve struct{} `cmd:"" default:"1" help:"Serve GraphQL (the default command)."`
	Venue struct{} `cmd:"" help:"Run the demo venue alone, or with --venue-url the proxy of --demo-control in front of that venue."`

	Settings struct {
		Check struct {
			Ask bool `help:"Also try the Redis of --shared-url, request public data of every kind from the venue, about thirty calls, and print what could not be read."`
		} `cmd:"" help:"Check the configuration and the files that it names, without starting anything; exit 1 if there is an error."`
		Show struct{} `cmd:"" help:"Print every setting with its value and its source."`
	} `cmd:"" name:"config" help:"Check or print the configuration."`

	Questions struct {
		Propose struct{} `cmd:"" help:"Print open markets of the first two venues that may ask the same question, with both rules texts and an entry for the questions file. Pairs of --questions-file are left out. It reads at most 50,000 markets of each venue, for at most ten minutes."`
		Check   struct {
			File   string `arg:"" optional:"" check:"file" help:"The file; --questions-file by default."`
			Accept string `check:"text" placeholder:"ID" help:"Write the hashes of the present rules texts of this question into the file."`
		} `cmd:"" help:"Check a questions file, and whether the venues' rules texts are those that it confirms; exit 1 if not."`
	} `cmd:"" help:"Find and check questions that several venues share."`

	Schema struct {
		Semantic bool `help:"Add @semanticNonNull to the nullable fields that are null only together with an error."`
	} `cmd:"" help:"Print the GraphQL schema."`
	Version     struct{} `cmd:"" help:"Print the version."`
	Licenses    struct{} `cmd:"" help:"Print the licences of the third-party code in the program and its pages."`
	Healthcheck struct{} `cmd:"" help:"Ask the server on this host whether it is healthy; exit 1 if it is not."`
}

// parser is one run of Parse. kong's own variables and resolvers do not give the same answers: kong stops at the first invalid value,
// takes an empty variable as a value, and prefers a file to the environment.
type parser struct {
	out      io.Writer
	names    []string         // names of the non-empty environment variables that begin with prefix, in order
	values   map[string]given // values of the variables in names, and, when loaded, of the other variables in the file
	loaded   bool
	origins  map[string]string // Config.origins
	helped   bool
	problems []error
}

// given is the value of a variable and the place where it is set.
type given struct{ value, origin string }

func newParser(environ []string, out io.Writer) *parser {
	p := &parser{out: out, values: map[string]given{}, origins: map[string]string{}}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if _, repeated := p.values[name]; repeated || value == "" || !strings.HasPrefix(name, prefix) {
			continue
		}
		p.names = append(p.names, name)
		p.values[name] = given{value, environment}
	}
	return p
}

func (p *parser) parse(args []string) (*Config, error) {
	g := &grammar{}
	k := p.kong(g)
	ctx, err := k.Parse(p.dropUnknownFlags(k, args))
	if p.helped {
		return nil, ErrHelp
	}
	if err != nil {
		p.problems = append(p.problems, err)
		// kong has stopped before reading the environment. Parse again without arguments, to report the problems of the environment, too.
		_, _ = k.Parse(nil)
	} else {
		g.Command, g.Ask, g.Semantic, g.Accept = commandOf(ctx), g.Settings.Check.Ask, g.Schema.Semantic, g.Questions.Check.Accept
		g.QuestionsFile = cmp.Or(g.Questions.Check.File, g.QuestionsFile)
		for _, path := range ctx.Path {
			if path.Flag != nil && isSetting(path.Flag) && !path.Resolved {
				p.origins[path.Flag.Name] = "--" + path.Flag.Name
			}
		}
		if len(p.origins) > 0 {
			g.origins = p.origins
		}
	}
	if g.Command.usesSettings() {
		p.checkNames(k)
	}
	p.addVenues(k, &g.Config)
	if flag, address := g.healthAddress(); g.Command == CommandHealthcheck && strings.HasSuffix(address, ":0") {
		p.report(flagOf(k, flag).Value, address, errors.New("has port 0, so healthcheck cannot know the port"), "the port that the server listens on")
	}
	if len(p.problems) > 0 {
		return &g.Config, errors.Join(p.problems...)
	}
	return &g.Config, nil
}

// kong returns a command-line parser that fills g. It reads variables with p.resolve, and adds invalid values to p.problems. It panics
// if a struct tag is wrong.
func (p *parser) kong(g *grammar) *kong.Kong {
	return kong.Must(g,
		kong.Name("oddsgraph"),
		kong.Description("One GraphQL endpoint in front of a prediction-market venue."),
		kong.Writers(p.out, p.out),
		kong.Exit(func(int) { p.helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
		kong.ValueFormatter(func(v *kong.Value) string {
			if v.Flag == nil || !isSetting(v.Flag) {
				return v.Help
			}
			return fmt.Sprintf("%s (%s; $%s)", v.Help, takes(v), variable(v.Flag.Name))
		}),
		kong.Resolvers(kong.ResolverFunc(p.resolve)),
		kong.KindMapper(reflect.Int, decoder{p, integers}),
		kong.KindMapper(reflect.Int64, decoder{p, longs}),
		kong.KindMapper(reflect.String, decoder{p, texts}),
		kong.KindMapper(reflect.Bool, boolDecoder{decoder{p, booleans}}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), decoder{p, durations}),
		kong.TypeMapper(reflect.TypeFor[Bytes](), decoder{p, sizes}),
		kong.TypeMapper(reflect.TypeFor[List](), decoder{p, lists}),
		kong.TypeMapper(reflect.TypeFor[slog.Level](), decoder{p, logLevels}),
	)
}

// resolve looks up a flag in the environment, then in the configuration file. It returns nil if neither sets the flag, if the flag
// is no setting, or if the command ignores the environment and the file.
func (p *parser) resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !isSetting(flag) || !commandOf(ctx).usesSettings() {
		return nil, nil
	}
	p.loadFile(ctx)
	v, ok := p.values[variable(flag.Name)]
	if !ok {
		return nil, nil
	}
	p.origins[flag.Name] = v.origin
	return v.value, nil
}

// commandOf returns the command without its arguments.
func commandOf(ctx *kong.Context) Command {
	return Command(strings.TrimSuffix(ctx.Command(), " <file>"))
}

// decoder is kong's mapper for the values of one Go type.
type decoder struct {
	p *parser
	check
}

func (d decoder) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("a value")
	if err != nil {
		return err
	}
	s := token.String()
	v, err := d.read(ctx.Value.Tag, s)
	if err != nil {
		d.p.report(ctx.Value, s, err, d.want(ctx.Value.Tag))
		return nil
	}
	target.Set(reflect.ValueOf(v).Convert(target.Type()))
	return nil
}

func (d decoder) describe(tag *kong.Tag) string { return d.takes(tag) }

// boolDecoder accepts a flag without a value.
type boolDecoder struct{ decoder }

func (boolDecoder) IsBool() bool { return true }

func (d boolDecoder) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		target.SetBool(true)
		return nil
	}
	return d.decoder.Decode(ctx, target)
}

// report adds a problem with the value s to p.problems. The text of the problem begins with the place where s was set: a variable,
// a line of the file, or a flag.
func (p *parser) report(v *kong.Value, s string, wrong error, want string) {
	first, second := "--"+v.Name, variable(v.Name)
	switch origin := p.origins[v.Name]; origin {
	case "":
	case environment:
		first, second = second, first
	default:
		first, second = origin+": "+second, first
	}
	switch {
	case isURL(v):
		s = redactURL(s)
	case v.Name == "venue-credentials":
		s = "[not shown]" // users may put credentials here by mistake
	}
	if v.Flag != nil && isSetting(v.Flag) {
		first += " (" + second + ")"
	}
	p.problems = append(p.problems, fmt.Errorf("%s: %q %w; want %s", first, s, wrong, want))
}

// dropUnknownFlags reports unknown flags and returns the other arguments, because kong would stop at an unknown flag.
func (p *parser) dropUnknownFlags(k *kong.Kong, args []string) []string {
	known := []string{"help"}
	for _, f := range flags(k) {
		known = append(known, f.Name)
	}
	for _, command := range k.Model.Leaves(false) {
		for _, f := range command.Flags {
			known = append(known, f.Name)
		}
	}
	kept := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(args[i], "=")
		if args[i] == "--" {
			return append(kept, args[i:]...)
		}
		if !strings.HasPrefix(name, "--") || slices.Contains(known, name[2:]) {
			kept = append(kept, args[i])
			continue
		}
		p.problems = append(p.problems, fmt.Errorf("%s is no flag%s", name, suggest("--", name[2:], known)))
		// If the next argument is neither a flag nor a command, treat it as the value of the unknown flag.
		if next := i + 1; !hasValue && next < len(args) && !strings.HasPrefix(args[next], "-") && !isCommand(k, args[next]) {
			i = next
		}
	}
	return kept
}

// platformVariable matches most variables that container platforms set for a service named oddsgraph.
var platformVariable = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)

// checkNames reports variables with the prefix that belong to no flag, except variables that container platforms set.
func (p *parser) checkNames(k *kong.Kong) {
	known := keys(k)
	for _, name := range p.names {
		ofPlatform := platformVariable.MatchString(name) || strings.HasSuffix(name, "_PORT") && strings.Contains(p.values[name].value, "://")
		if key := name[len(prefix):]; !slices.Contains(known, key) && !ofPlatform {
			p.problems = append(p.problems, unknown(key, known))
		}
	}
}

// unknown returns the error of an unknown variable. key is its name without the prefix.
func unknown(key string, known []string) error {
	return fmt.Errorf("%s%s is no variable of oddsgraph%s", prefix, key, suggest(prefix, key, known))
}

func variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func isURL(v *kong.Value) bool {
	kind := v.Tag.Get("check")
	return kind == "venue" || kind == "stream" || kind == "redis"
}

func isCommand(k *kong.Kong, s string) bool {
	return slices.ContainsFunc(k.Model.Children, func(n *kong.Node) bool { return n.Name == s })
}

// isSetting reports whether a flag has a variable. Only --help and the flags of a single command have none.
func isSetting(f *kong.Flag) bool { return f.Group != nil }

// flags returns the flags that are settings, in the order of their declaration.
func flags(k *kong.Kong) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(k.Model.Flags), func(f *kong.Flag) bool { return !isSetting(f) })
}

// keys returns the names of all variables without the prefix.
func keys(k *kong.Kong) (keys []string) {
	for _, f := range flags(k) {
		keys = append(keys, strings.TrimPrefix(variable(f.Name), prefix))
	}
	return keys
}

func flagOf(k *kong.Kong, name string) *kong.Flag {
	return k.Model.Flags[slices.IndexFunc(k.Model.Flags, func(f *kong.Flag) bool { return f.Name == name })]
}

// suggest returns the end of an error about an unknown name: the most similar known name, or a reference to --help.
func suggest(before, name string, known []string) string {
	best, least := "", len(name)/3+1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(name, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return "; see --help for all"
	}
	return "; did you mean " + before + best + "?"
}
