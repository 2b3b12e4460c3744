package demo

import (
	"fmt"
	"strconv"
	"strings"
)

type category struct {
	name, tag string
	sources   []string
	// plan returns the texts of event number n of the category. The event ends at the time end.
	plan func(n int, s shape, end millis, r *rng) plan
}

type plan struct {
	title   string
	tags    []string
	markets []marketPlan
	// ladder is true if YES in a market implies YES in the previous market. If ladder is false and the plan sets no chances,
	// exactly one of several markets is YES.
	ladder  bool
	chances []Price
}

// marketPlan has the texts of a market. outcomes is nil for a binary market.
type marketPlan struct {
	question, item, tag string
	outcomes            []string
}

// chance returns the mean price of YES in the market at index k.
func (p *plan) chance(k int, r *rng) Price {
	if p.chances == nil {
		switch n := len(p.markets); {
		case n == 1:
			p.chances = []Price{Price(r.between(12, 88)) * 100}
		case p.ladder:
			for i := range n {
				p.chances = append(p.chances, payout*Price(n-i)/Price(n+1))
			}
		default:
			p.chances = shares(n, r)
		}
	}
	return p.chances[k]
}

var categories = []category{
	{"Politics", "politics", []string{"the national electoral commission", "the official gazette"}, planPolitics},
	{"Crypto", "crypto", []string{"the venue's reference index"}, planCrypto},
	{"Sports", "sports", []string{"the league's official results"}, planSports},
	{"Economics", "economics", []string{"the national statistics office", "the central bank"}, planEconomics},
	{"Science", "science", []string{"the mission's operator", "a peer-reviewed publication"}, planScience},
	{"Culture", "culture", []string{"the awarding academy", "the industry's box office report"}, planCulture},
	{"Technology", "technology", []string{"the company's own announcement", "the public leaderboard"}, planTechnology},
}

func dateOf(t millis) string  { return t.Time().Format("January 2, 2006") }
func monthOf(t millis) string { return t.Time().Format("January 2006") }
func yearOf(t millis) string  { return t.Time().Format("2006") }

func pick(list []string, n int) string { return list[n%len(list)] }

// several returns different elements of list. count is their number.
func several(list []string, count int, r *rng) []string {
	from := r.intn(len(list))
	picked := make([]string, count)
	for i := range picked {
		picked[i] = list[(from+i*7)%len(list)] // no list's length is a multiple of 7
	}
	return picked
}

func binaries(items []string, question string) []marketPlan {
	plans := make([]marketPlan, len(items))
	for i, item := range items {
		plans[i] = marketPlan{question: fmt.Sprintf(question, item), item: item}
	}
	return plans
}

func single(question string, tags ...string) plan {
	return plan{title: question, tags: tags, markets: []marketPlan{{question: question}}}
}

// choices returns an event with one or two categorical markets.
func choices(s shape, list []string, r *rng, first, second string, tags ...string) plan {
	p := plan{title: first, tags: tags}
	for k, question := range []string{first, second}[:s.categorical] {
		mp := marketPlan{question: question, outcomes: several(list, r.between(3, 8), r)}
		if s.categorical > 1 {
			mp.item = [...]string{"First", "Second"}[k]
		}
		p.markets = append(p.markets, mp)
	}
	return p
}

func planPolitics(n int, s shape, end millis, r *rng) plan {
	country, year := pick(countries, n), yearOf(end)
	switch {
	case s.categorical > 0:
		return choices(s, parties, r,
			fmt.Sprintf("Which party wins the most seats in %s in %s?", country, year),
			fmt.Sprintf("Which party comes second in %s in %s?", country, year), "parliament", "elections")
	case s.binary == 1:
		return single(fmt.Sprintf("Will the parliament of %s pass the %s bill before %s?", country, pick(bills, n), dateOf(end)), "parliament")
	}
	office := pick([]string{"presidential election", "leadership election", "mayoral election in the capital"}, n/len(countries)+n)
	return plan{
		title: fmt.Sprintf("%s %s %s", country, office, year), tags: []string{"elections"},
		markets: binaries(people(s.binary, r), "Will %s win the "+year+" "+country+" "+office+"?"),
	}
}

func planCrypto(n int, s shape, end millis, r *rng) plan {
	c := coins[n%len(coins)]
	switch {
	case s.categorical > 0:
		names := make([]string, len(coins))
		for i := range coins {
			names[i] = coins[i].name
		}
		return choices(s, names, r,
			fmt.Sprintf("Which of these coins gains the most in %s?", monthOf(end)),
			fmt.Sprintf("Which of these coins gains the least in %s?", monthOf(end)), "altcoins")
	case s.binary == 1:
		return single(fmt.Sprintf("Will %s set a new all-time high before %s?", c.name, dateOf(end)), c.symbol)
	case n%3 == 0: // an event with one up-or-down market for each of the first s.binary timeframes
		p := plan{title: c.name + " up or down", tags: []string{c.symbol, tagUpOrDown}}
		for _, t := range timeframes[:s.binary] {
			p.markets = append(p.markets, marketPlan{
				question: fmt.Sprintf("Will %s rise in the last %s before %s?", c.name, strings.TrimPrefix(t.name, "1 "), dateOf(end)),
				item:     t.name, tag: t.code,
			})
			p.chances = append(p.chances, Price(r.between(42, 58))*100)
		}
		return p
	}
	p := plan{title: fmt.Sprintf("What price will %s reach by %s?", c.name, dateOf(end)), tags: []string{c.symbol, "price-targets"}, ladder: true}
	for k := range s.binary {
		target := thousands(c.base + c.base*k/5)
		p.markets = append(p.markets, marketPlan{
			question: fmt.Sprintf("Will %s reach $%s by %s?", c.name, target, dateOf(end)), item: "$" + target,
		})
	}
	return p
}

func planSports(n int, s shape, end millis, r *rng) plan {
	league, year := pick(leagues, n), yearOf(end)
	switch {
	case s.categorical == 1 && n%2 == 0:
		a, b := pick(teams, r.intn(len(teams))), pick(clubs, r.intn(len(clubs)))
		title := fmt.Sprintf("%s vs %s on %s", a, b, dateOf(end))
		return plan{title: title, tags: []string{"matches"}, markets: []marketPlan{{question: title, outcomes: []string{a, "Draw", b}}}}
	case s.categorical > 0:
		return choices(s, people(20, r), r,
			fmt.Sprintf("Who is the top scorer of the %s in %s?", league, year),
			fmt.Sprintf("Who is the best young player of the %s in %s?", league, year), "players")
	case s.binary == 1:
		return single(fmt.Sprintf("Will the %s reach the %s final in %s?", pick(teams, n), league, year), "finals")
	}
	return plan{
		title: fmt.Sprintf("%s winner %s", league, year), tags: []string{"champions"},
		markets: binaries(several(teams, s.binary, r), "Will the %s win the "+year+" "+league+"?"),
	}
}

func planEconomics(n int, s shape, end millis, r *rng) plan {
	country := pick(countries, n)
	switch {
	case s.categorical > 0:
		return choices(s, rateMoves, r,
			fmt.Sprintf("Central bank of %s: rate decision in %s", country, monthOf(end)),
			fmt.Sprintf("Central bank of %s: rate decision after %s", country, monthOf(end)), "interest-rates")
	case s.binary == 1:
		return single(fmt.Sprintf("Will %s enter a recession before %s?", country, dateOf(end)), "gdp")
	}
	p := plan{title: fmt.Sprintf("%s inflation in %s", country, monthOf(end)), tags: []string{"inflation"}, ladder: true}
	for k := range s.binary {
		rate := fmt.Sprintf("%.1f%%", 1+float64(n%5)*0.4+float64(k)*0.3)
		p.markets = append(p.markets, marketPlan{
			question: fmt.Sprintf("Will inflation in %s be at least %s in %s?", country, rate, monthOf(end)), item: "≥ " + rate,
		})
	}
	return p
}

func planScience(n int, s shape, end millis, r *rng) plan {
	mission := pick(missions, n)
	switch {
	case s.categorical > 0:
		return choices(s, bodies, r,
			fmt.Sprintf("Where does the %s probe land first before %s?", mission, dateOf(end)),
			fmt.Sprintf("Where does the %s probe send its first picture from before %s?", mission, dateOf(end)), "space")
	case s.binary == 1:
		return single(fmt.Sprintf("Will %s be confirmed before %s?", pick(discoveries, n), dateOf(end)), "research")
	}
	p := plan{title: fmt.Sprintf("How many %s launches by %s?", mission, dateOf(end)), tags: []string{"space", "launches"}, ladder: true}
	for k := range s.binary {
		count := strconv.Itoa(2 + 2*k + n%5)
		p.markets = append(p.markets, marketPlan{
			question: fmt.Sprintf("Will there be %s or more %s launches by %s?", count, mission, dateOf(end)), item: count + " or more",
		})
	}
	return p
}

func planCulture(n int, s shape, end millis, r *rng) plan {
	award, prize := pick(awards, n), pick(prizes, n/len(awards)+n)
	switch {
	case s.categorical > 0:
		return choices(s, titles(24), r,
			fmt.Sprintf("Which film leads the box office in %s, week %d?", monthOf(end), 1+n%4),
			fmt.Sprintf("Which film comes second at the box office in %s, week %d?", monthOf(end), 1+n%4), "films", "box-office")
	case s.binary == 1:
		return single(fmt.Sprintf("Will “%s” gross more than $%d million before %s?", titles(24)[n%24], 100+50*(n%12), dateOf(end)), "films", "box-office")
	}
	return plan{
		title: fmt.Sprintf("%s %s: %s", award, yearOf(end), prize), tags: []string{"awards", "films"},
		markets: binaries(several(titles(24), s.binary, r), "Will “%s” win "+prize+" at the "+yearOf(end)+" "+award+"?"),
	}
}

func planTechnology(n int, s shape, end millis, r *rng) plan {
	switch {
	case s.categorical > 0:
		return choices(s, companies, r,
			fmt.Sprintf("Which company leads the %s ranking at the end of %s?", pick(rankings, n), monthOf(end)),
			fmt.Sprintf("Which company comes second in the %s ranking at the end of %s?", pick(rankings, n), monthOf(end)), "ai", "rankings")
	case s.binary == 1:
		return single(fmt.Sprintf("Will %s ship its %s before %s?", pick(companies, n), pick(products, n), dateOf(end)), "products")
	}
	product, named := withArticle(pick(products, n)), companies[:len(companies)-1] // without "Another company"
	return plan{
		title: fmt.Sprintf("First to ship %s by %s", product, dateOf(end)), tags: []string{"products"},
		markets: binaries(several(named, s.binary, r), "Will %s be the first to ship "+product+" by "+dateOf(end)+"?"),
	}
}

func people(count int, r *rng) []string {
	first, last := several(firstNames, count, r), several(lastNames, count, r)
	for i := range first {
		first[i] += " " + last[i]
	}
	return first
}

// titles returns different invented film titles. count is their number.
func titles(count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = "The " + pick(adjectives, i) + " " + pick(nouns, i)
	}
	return list
}

func withArticle(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// coin is a currency that is traded against the dollar. base is the lowest price, in dollars, that a question asks about.
type coin struct {
	name, symbol string
	base         int
}

var coins = []coin{
	{"Bitcoin", "btc", 100_000}, {"Ethereum", "eth", 4_000}, {"Solana", "sol", 200}, {"Cardano", "ada", 5},
	{"Dogecoin", "doge", 5}, {"Litecoin", "ltc", 100}, {"Avalanche", "avax", 40}, {"Polkadot", "dot", 10},
	{"Chainlink", "link", 25}, {"Monero", "xmr", 300}, {"Stellar", "xlm", 5},
}

// tagUpOrDown marks events whose markets ask whether a coin's price is higher at the end of a timeframe than at its start.
const tagUpOrDown = "up-or-down"

// timeframe is the time over which an up-or-down market compares prices.
type timeframe struct{ code, name string }

var timeframes = []timeframe{
	{"5m", "5 minutes"}, {"15m", "15 minutes"}, {"30m", "30 minutes"}, {"1h", "1 hour"},
	{"4h", "4 hours"}, {"12h", "12 hours"}, {"1d", "1 day"}, {"1w", "1 week"},
}

var (
	countries = []string{
		"France", "Germany", "Japan", "Brazil", "Canada", "Kenya", "Norway", "Portugal", "India", "Mexico", "Poland", "Chile",
		"Spain", "Italy", "Australia", "Ghana", "Sweden", "Greece", "Ireland", "Peru", "Austria", "Finland", "Uruguay", "Morocco",
		"Denmark", "Belgium", "Croatia", "Colombia", "Iceland", "Estonia", "Latvia", "Malta", "Nepal", "Panama", "Slovenia", "Thailand",
		"Vietnam", "Zambia", "Jordan", "Cyprus", "Argentina", "Hungary", "Romania", "Botswana", "Senegal", "Malaysia", "New Zealand",
	}
	parties = []string{
		"Liberal Alliance", "National Union", "Green Future", "Social Democrats", "Civic Platform", "Farmers' List",
		"People's Party", "Reform Movement", "Centre Bloc", "New Republic", "Another party",
	}
	bills = []string{
		"housing", "digital identity", "pension reform", "clean air", "border trade", "water rights", "open data", "school funding",
		"railway", "energy storage", "fishing quota",
	}
	firstNames = []string{
		"Anna", "Bruno", "Clara", "Davide", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kamila", "Lars", "Mona", "Nils",
		"Olga", "Pavel", "Rosa", "Samir", "Tara", "Viktor", "Wanda", "Yusuf", "Zoe",
	}
	lastNames = []string{
		"Abara", "Bergström", "Castell", "Dvorak", "Eriksen", "Fontaine", "Garrick", "Halloran", "Ivanek", "Jardine", "Kowal",
		"Lindqvist", "Moreau", "Novák", "Okafor", "Petrov", "Quist", "Rahman", "Sandoval", "Tanaka", "Ulrich", "Varga", "Winther",
		"Xu", "Yamada", "Zeller", "Almeida", "Brandt", "Correia", "Duarte", "Engel",
	}
	leagues = []string{
		"Northern Cup", "Continental League", "Harbour Trophy", "Premier Basket League", "Ice Masters", "Grand Rugby Series",
		"Island Cricket Cup", "Coastal Regatta", "Summit Cycling Tour", "Capital Volley League", "Union Handball Cup",
	}
	teams = []string{
		"Harbour Hawks", "River Wolves", "Stone Lions", "Summit Bears", "Valley Foxes", "Coast Sharks", "Forest Stags",
		"Prairie Bulls", "Desert Falcons", "Island Dolphins", "Meadow Hares", "Canyon Eagles", "Delta Herons", "Glacier Owls",
		"Bay Otters", "Ridge Rams", "Lake Pikes", "Field Larks", "Moor Ravens",
	}
	clubs = []string{
		"Athletic North", "Rovers Eastgate", "United Millbrook", "City Wanderers", "Real Puerto", "Dynamo Westhaven", "Olympic Lindau",
		"Racing Oakfield",
	}
	rateMoves = []string{
		"75+ bps cut", "50 bps cut", "25 bps cut", "No change", "25 bps hike", "50 bps hike", "75+ bps hike", "No meeting",
	}
	missions = []string{
		"Aurora", "Borealis", "Calypso", "Daedalus", "Equinox", "Fulmar", "Gannet", "Halcyon", "Icarus", "Juniper", "Kestrel",
	}
	bodies = []string{
		"The Moon", "Mars", "Venus", "Phobos", "Europa", "Titan", "Ceres", "Vesta", "Ganymede", "Nowhere",
	}
	discoveries = []string{
		"a room-temperature superconductor", "a ninth planet", "water ice in lunar sand", "a new pattern in the prime numbers",
		"a universal flu vaccine", "a fusion record above 100 seconds", "life in a subglacial lake", "a fifth force",
		"a glacier retreat record", "a magnitude 8 earthquake", "a record-warm year",
	}
	awards = []string{
		"Golden Reel Awards", "Silver Mask Awards", "Grand Stage Awards", "Lantern Festival", "Northern Lights Festival",
	}
	prizes     = []string{"Best Picture", "Best Director", "Best Score", "Best Script", "Best Debut", "Best Documentary"}
	adjectives = []string{
		"Silent", "Last", "Crimson", "Hidden", "Broken", "Golden", "Distant", "Frozen", "Burning", "Second", "Quiet", "Endless",
	}
	nouns = []string{
		"Harbour", "Letter", "Orchard", "Mirror", "Voyage", "Signal", "Garden", "Winter", "Crossing", "Witness", "Island", "Theatre", "Clock",
	}
	companies = []string{
		"Northwind Labs", "Blue Kite", "Cobalt Works", "Delphi Systems", "Ember AI", "Foundry Nine", "Glasshouse", "Helix Motors",
		"Ironleaf", "Juno Robotics", "Another company",
	}
	products = []string{
		"foldable tablet", "home robot", "solid-state battery", "translation earpiece", "quantum cloud", "electric van",
		"smart lens", "delivery drone", "open reasoning model", "satellite phone", "carbon-free chip",
	}
	rankings = []string{
		"open reasoning", "code assistant", "speech", "translation", "image model", "robotics", "chip design", "map search",
	}
)
