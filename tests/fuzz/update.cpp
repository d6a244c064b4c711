// Any octets as an UPDATE to a small zone: never a crash. What is accepted can be applied, and the
// zone that it leaves has one SOA, NS records and a serial that moved if anything else did.

#include "manager/update_request.h"
#include "tests/fuzz/served_zone.h"

namespace {

using namespace pando;
using namespace pando::manager;

const char* const kZone = R"($TTL 300
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

/// Applies what an accepted update comes to, in a draft that nobody will see.
void apply(fuzz::ServedZone& served, const UpdateOutcome& outcome) {
  shm::Transaction transaction = served.store().begin_private();
  const auto current = served.store().current();
  zone::Draft draft(transaction, current.root, current.number + 1);
  const dns::Serial before = served.zone().serial();
  const auto applied = draft.apply(outcome.changes, zone::DataLimits{});
  PANDO_ASSERT(applied);
  const zone::ZoneView after = draft.snapshot().zone_at(served.apex());
  PANDO_ASSERT(after.soa() && after.soa().count() == 1);
  PANDO_ASSERT(after.apex_record().has_ns());
  PANDO_ASSERT(applied->effective.empty() || after.serial().ahead_of(before));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::ServedZone* const served = new fuzz::ServedZone(kZone);
  static const bool unlinked = ::unlink(served->path().c_str()) == 0;
  PANDO_ASSERT(unlinked);
  const auto message = parse_update({data, size});
  if (!message) {
    PANDO_ASSERT(message.error().rcode != dns::Rcode::kNoError && !message.error().reason.empty());
    return 0;
  }
  const zone::Acl everybody(1);
  UpdateRules rules;
  rules.allow_update = &everybody;
  rules.now = 1'700'000'000;
  const UpdateOutcome outcome = compute_update(served->snapshot(), *message, rules);
  if (outcome.rcode != dns::Rcode::kNoError) {
    PANDO_ASSERT(outcome.changes.empty());
    return 0;
  }
  if (!outcome.changes.empty()) apply(*served, outcome);
  return 0;
}
