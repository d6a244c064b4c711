// One round of external-dns, with its own planner and providers, as its controller makes one: it reads the records of
// a zone, plans the changes to those of standard input, and applies them. It prints the planned changes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider"
	"sigs.k8s.io/external-dns/provider/pdns"
	"sigs.k8s.io/external-dns/provider/rfc2136"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The words are the provider, the zone, and what the provider needs: URL and key, or port, key name and secret.
func providerOf(words []string) (provider.Provider, error) {
	filter := endpoint.NewDomainFilter([]string{words[1]})
	if words[0] == "pdns" {
		return pdns.NewPDNSProvider(context.Background(),
			pdns.PDNSConfig{DomainFilter: filter, Server: words[2], APIKey: words[3]})
	}
	port, err := strconv.Atoi(words[2])
	if err != nil {
		return nil, err
	}
	return rfc2136.NewRfc2136Provider("127.0.0.1", port, []string{words[1]}, false, words[3], words[4], "hmac-sha256",
		true, filter, false, time.Minute, false, "", "", "", 50, rfc2136.TLSConfig{}, nil)
}

func main() {
	var desired []*endpoint.Endpoint
	must(json.NewDecoder(os.Stdin).Decode(&desired))
	changed, err := providerOf(os.Args[1:])
	must(err)
	current, err := changed.Records(context.Background())
	must(err)
	desired, err = changed.AdjustEndpoints(desired)
	must(err)
	kinds := []string{endpoint.RecordTypeA, endpoint.RecordTypeAAAA, endpoint.RecordTypeCNAME, endpoint.RecordTypeTXT}
	planned := (&plan.Plan{
		Current: current, Desired: desired, ManagedRecords: kinds,
		Policies: []plan.Policy{&plan.SyncPolicy{}},
	}).Calculate()
	changes := planned.Changes
	must(changed.ApplyChanges(context.Background(), changes))
	fmt.Printf("%d created, %d updated, %d deleted\n", len(changes.Create), len(changes.UpdateNew), len(changes.Delete))
}
