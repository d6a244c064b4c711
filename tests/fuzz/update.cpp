// Any octets as an UPDATE to a small zone, and to one that is signed, with NSEC and with NSEC3:
// never a crash. What is accepted can be applied, and the zone that it leaves has one SOA, NS
// records and a serial that moved if anything else did.

#include "manager/update/update_request.h"
#include "tests/fuzz/served_zone.h"

namespace {

using namespace pando;
using namespace pando::manager;

constexpr const char* kZone = R"($TTL 300
@ SOA ns1 admin 2026 3600 600 86400 60
@ NS ns1
@ NS ns2
ns1 A 192.0.2.1
ns2 A 192.0.2.2
web A 192.0.2.80
web A 192.0.2.81
www CNAME web
text TXT "one" "two"
a.b.c TXT "ent"
* TXT "wild"
sub NS ns.sub
sub DS 1 8 2 0123456789012345678901234567890123456789012345678901234567890123
ns.sub A 192.0.2.53
dn DNAME example.org.
)";

// What is there is trusted, so nobody looks at these signatures; but who changes anything has to
// bring better ones.
constexpr const char* kNsec = R"($TTL 300
@ SOA ns1 admin 2026 3600 600 86400 60
@ RRSIG SOA 15 1 300 20300101000000 20200101000000 3613 example. AAAA
@ NS ns1
@ DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=
@ NSEC ns1 NS SOA RRSIG NSEC DNSKEY
ns1 A 192.0.2.1
ns1 NSEC sub A RRSIG NSEC
sub NS ns.sub
sub NSEC web NS RRSIG NSEC
ns.sub A 192.0.2.53
web A 192.0.2.80
web NSEC @ A RRSIG NSEC
)";
constexpr const char* kNsec3 = R"($TTL 300
@ SOA ns1 admin 2026 3600 600 86400 60
@ RRSIG SOA 15 1 300 20300101000000 20200101000000 3613 example. AAAA
@ NS ns1
@ DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=
@ NSEC3PARAM 1 0 1 AABB
0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 1 1 AABB 2t7b4g4vsa5smi47k61mv5bv1a22bojr NS SOA RRSIG
2t7b4g4vsa5smi47k61mv5bv1a22bojr NSEC3 1 1 1 AABB 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A RRSIG
ns1 A 192.0.2.1
sub NS ns.sub
ns.sub A 192.0.2.53
web A 192.0.2.80
)";

/// Applies what an accepted update comes to, in a draft that nobody will see.
void apply(fuzz::ServedZone& served, const UpdateOutcome& outcome) {
  shm::Transaction transaction = served.store().begin_private();
  const auto current = served.store().current();
  zone::Draft draft(transaction, current.root, current.number + 1);
  const dns::Serial before = served.zone().serial();
  const auto applied = draft.apply(outcome.changes, zone::DataLimits{});
  PANDO_ASSERT(applied);
  const zone::ZoneView after = draft.view().zone_at(served.apex());
  PANDO_ASSERT(after.soa() && after.soa().count() == 1);
  PANDO_ASSERT(after.apex_record().has_ns());
  PANDO_ASSERT(applied->effective.empty() || after.serial().ahead_of(before));
}

std::vector<std::unique_ptr<fuzz::ServedZone>> served_zones() {
  std::vector<std::unique_ptr<fuzz::ServedZone>> zones;
  for (const char* text : {kZone, kNsec, kNsec3}) {
    zones.push_back(std::make_unique<fuzz::ServedZone>(text));
    PANDO_ASSERT(::unlink(zones.back()->path().c_str()) == 0);
  }
  return zones;
}

void update(fuzz::ServedZone& served, const UpdateMessage& message) {
  const zone::Acl everybody(1);
  UpdateRules rules;
  rules.allow_update = &everybody;
  rules.now = 1'700'000'000;
  const UpdateOutcome outcome = compute_update(served.view(), message, rules);
  if (outcome.rcode != dns::Rcode::kNoError)
    PANDO_ASSERT(outcome.changes.empty());
  else if (!outcome.changes.empty())
    apply(served, outcome);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto* const zones = new std::vector(served_zones());
  const auto message = parse_update(ParsedRequest(Bytes(data, data + size)));
  if (!message) {
    PANDO_ASSERT(message.error().rcode != dns::Rcode::kNoError && !message.error().reason.empty());
    return 0;
  }
  for (const auto& served : *zones) update(*served, *message);
  return 0;
}
