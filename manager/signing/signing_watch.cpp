#include "manager/signing/signing_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "dns/folded_key.h"
#include "ipc/log.h"
#include "shm/side_table.h"

namespace pando::manager {

namespace {

/// Seconds: RFC 8767 §4: resolvers keep nothing for longer.
constexpr std::uint64_t kMaxCached = 7 * 86400;

}  // namespace

void SigningWatch::looked(const dns::Name& zone, const ZoneSignerPtr& signer,
                          const SignatureLook& look) {
  const zone::ZoneView served = committer_.current().zone_at(zone);
  if (!served || !served.loaded()) return;
  shm::set_signatures_end(store_, served.side_index(), look.first_end);
  const auto present = zones_.signer_of(zone);
  if (!present || !*present) return;
  check_end(zone, look.first_end, (*present)->options().refresh);
  if (*present == signer) note_stage(zone, look);
}

/// The times are those of now, not of the publication: a wait gets longer by that, never shorter.
void SigningWatch::note_stage(const dns::Name& zone, const SignatureLook& look) {
  const SigningFacts* const facts = zones_.facts_of(zone);
  if (facts == nullptr) return;
  const std::uint64_t now = zones_.now(), ttl = std::min(look.max_ttl, kMaxCached);
  if (facts->signed_since == 0)
    return zones_.edit_facts(
        zone,
        [now, ttl](SigningFacts& known) {
          known.signed_since = now;
          known.max_ttl = std::max(known.max_ttl, ttl);
        },
        nullptr);
  note_ttl(zone, ttl, *facts);
  const bool has_key_sets = look.due.empty() || !(look.due.front() == zone);
  const SigningState state = zones_.state_of(zone);
  if (state.stage != SigningStage::kDsWanted || facts->cds_since != 0 || !has_key_sets) return;
  log::info("ds_wanted", "zone", dns::to_text(zone), "ds",
            fmt::format("{}", fmt::join(ds_records(zones_, committer_.current().zone_at(zone)), "; ")));
  zones_.edit_facts(zone, [now](SigningFacts& known) { known.cds_since = now; }, nullptr);
}

void SigningWatch::note_ttl(const dns::Name& zone, std::uint64_t ttl, const SigningFacts& facts) {
  const std::uint64_t now = zones_.now(), propagation = zones_.wanted(zone).waits.propagation;
  SigningFacts noted = facts;
  note_longest_ttl(noted, ttl, propagation, now);
  if (noted == facts) return;
  const auto edit = [=](SigningFacts& known) { note_longest_ttl(known, ttl, propagation, now); };
  zones_.edit_facts(zone, edit, nullptr);
}

/// The time of the last look is kept beside the zone. Of a zone that was never looked at, the SOA's
/// signature is the newest one.
void SigningWatch::keys_unusable(const dns::Name& zone, std::uint64_t refresh) {
  const zone::ZoneView served = committer_.current().zone_at(zone);
  if (!served || !served.loaded()) return;
  const auto* side = shm::known_side(store_.window(), served.side_index());
  const std::uint64_t seen = side == nullptr ? 0 : shm::signatures_end(*side);
  const std::uint64_t first_end =
      seen != 0 ? seen : ZoneSigner::last_signature(served, zones_.now()).end;
  check_end(zone, first_end, refresh);
}

void SigningWatch::forget_gone() {
  const auto is_gone = [this](const std::string& key) {
    return !zones_.has(dns::Name(dns::name_of_key(key)));
  };
  std::erase_if(late_, [&](const auto& late) { return is_gone(late.first); });
  std::erase_if(unwritten_, is_gone);
}

/// Signatures are renewed a fifth of `refresh` before the time that everybody is to see. Half of it
/// is left for the operator after the first line.
void SigningWatch::check_end(const dns::Name& zone, std::uint64_t first_end,
                             std::uint64_t refresh) {
  constexpr std::uint64_t kRepeatAfter = 86400;
  const std::string key = dns::folded_key(zone);
  if (first_end == 0) return;
  const std::uint64_t now = zones_.now();
  const std::uint64_t left = first_end > now ? first_end - now : 0;
  if (left >= refresh / 2) {
    late_.erase(key);
    return;
  }
  Late& late = late_[key];
  late.first_end = first_end;
  const bool was_urgent = std::exchange(late.is_urgent, left < refresh / 4);
  const bool is_worse = late.is_urgent && !was_urgent;
  if (late.told_at != 0 && now < late.told_at + kRepeatAfter && !is_worse) return;
  late.told_at = now;
  if (late.is_urgent)
    log::error("signatures_late", "zone", dns::to_text(zone), "s", left);
  else
    log::warning("signatures_late", "zone", dns::to_text(zone), "s", left);
}

void SigningWatch::was_unsigned(const dns::Name& zone) {
  const zone::ZoneView served = committer_.current().zone_at(zone);
  if (!served || !zones_.unsigning(zone) || served.denial() != zone::Denial::kUnsigned) return;
  shm::set_signatures_end(store_, served.side_index(), 0);
  late_.erase(dns::folded_key(zone));
  // Somebody may have cancelled the unsigning meanwhile.
  const auto edit = [now = zones_.now()](SigningFacts& known) {
    if (known.unsign_since != 0 && known.unsigned_since == 0) known.unsigned_since = now;
  };
  zones_.edit_facts(zone, edit, [this, zone](const Status& done) {
    done ? unwritten_.erase(dns::folded_key(zone)) : unwritten_.insert(dns::folded_key(zone)).second;
  });
}

void SigningWatch::retry(std::chrono::steady_clock::time_point now) {
  if (unwritten_.empty() || now < next_retry_) return;
  next_retry_ = now + kRetry;
  for (const std::string& key : std::set<std::string>(unwritten_))
    was_unsigned(dns::Name(dns::name_of_key(key)));
}

std::string SigningWatch::problem(dns::NameView zone) const {
  if (late_.empty()) return {};
  const auto late = late_.find(dns::folded_key(zone));
  if (late == late_.end()) return {};
  const std::uint64_t now = zones_.now();
  const std::uint64_t left = late->second.first_end > now ? late->second.first_end - now : 0;
  return fmt::format("signatures are not renewed: the first ones end in {} s", left);
}

}  // namespace pando::manager
